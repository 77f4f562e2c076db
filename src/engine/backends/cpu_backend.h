// A model made ready to serve on this machine's cores: decoder, pages, cache and runner, sized to
// each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/backends/backend.h"
#include "engine/backends/cpu_runner.h"
#include "engine/core.h"
#include "kv/cache.h"
#include "kv/memory/page_buffer.h"
#include "model/decoder.h"

namespace pagoda::engine {

struct BackendOptions {
  std::size_t threads = 0;                        // 0: every core this process may use
  std::optional<kv::memory::Element> kv_element;  // unset: the default for this CPU
  std::uint32_t block_tokens = 16;
  std::optional<std::uint64_t> kv_bytes;  // unset: kKvMemoryShare of free memory
  std::uint64_t context_tokens = 0;       // 0: as the model says
  bool prefix_caching = true;
  const kv::EvictionPolicy* kv_eviction = &kv::lru_policy();
  bool live_curve = false;  // say what other sizes and policies would have given
  // Shares of the cache's blocks; 0: none, or no limit.
  double retain_share = 0;             // that one tenant's requests may have retained
  double quota_share = 0;              // beyond which a tenant loses blocks first
  double quota_share_public = 0;       // beyond which what is public does
  kv::EventRing* kv_events = nullptr;  // outlives the backend; nullptr: nobody is told
  bool hash_blocks = false;            // for tiers outside the pool
  sched::SchedulerOptions scheduler;
  std::string model_name;           // of the namespace
  std::vector<TokenId> end_tokens;  // of the model
  model::PackProgress on_pack = {};
  // For tests: is told of pages that hold the same tokens, both computed, of which one will do.
  std::function<void(std::span<const std::byte> mine, std::span<const std::byte> existing)>
      on_deduplicate = {};
};

class CpuBackend final : public Backend {
 public:
  // Config, weights and the kernel set must outlive the backend. An error when not even the
  // smallest context fits, with both numbers.
  static Result<std::unique_ptr<CpuBackend>> create(const model::Config& config,
                                                    const model::Weights& weights,
                                                    const kernels::KernelSet& kernels,
                                                    const BackendOptions& options);

  void use_tiers(const TierOptions& tiers) override;
  Result<std::unique_ptr<kv::PageCopier>> create_page_copier() override {
    return std::unique_ptr<kv::PageCopier>();
  }
  std::string rows_id() const override { return rows_id_; }
  const CoreOptions& core_options() const override { return core_options_; }
  kv::Cache& cache() override { return *cache_; }
  Runner& runner() override { return *runner_; }
  const kv::memory::PageLayout& page_layout() const override { return decoder_.page_layout(); }
  std::size_t threads() const override { return pool_.threads(); }
  std::string device_name() const override;
  std::uint64_t kv_bytes() const override { return kv_bytes_; }
  std::uint64_t kv_tokens() const override;
  std::optional<std::uint64_t> context_asked() const override { return context_asked_; }

 private:
  CpuBackend(const model::Config& config, const model::Weights& weights,
             const kernels::KernelSet& kernels, const BackendOptions& options);
  Status take_pages(const BackendOptions& options);
  Status fit_context(const BackendOptions& options);
  std::function<void(kv::BlockId, kv::BlockId)> duplicate_check(const BackendOptions& options);

  ThreadPool pool_;
  model::Decoder decoder_;
  std::optional<kv::memory::PageBuffer> pages_;
  std::optional<kv::Cache> cache_;
  std::optional<CpuRunner> runner_;
  CoreOptions core_options_;
  std::string rows_id_;
  std::uint64_t kv_bytes_ = 0;
  std::optional<std::uint64_t> context_asked_;
};

}  // namespace pagoda::engine
