// PagedBackend is the part of a backend that is the same on every device: a cache over as many
// pages as the device holds, and the engine's options sized to that cache.
//
// A backend of a device makes its decoder and its pages, calls open_cache(), makes its runner, and
// calls open_core() last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/backends/backend.h"
#include "engine/backends/backend_options.h"
#include "engine/core.h"
#include "engine/draft_model.h"
#include "kv/cache.h"
#include "kv/memory/cache_groups.h"
#include "kv/memory/page_layout.h"
#include "model/config.h"

namespace pagoda::engine {

// Returns the context in tokens that the options ask for, else the model's own.
std::uint64_t context_wanted(const BackendOptions& options, const model::Config& config);

class PagedBackend : public Backend {
 public:
  const CoreOptions& core_options() const final { return core_options_; }
  kv::Cache& cache() final { return *cache_; }
  const kv::memory::PageLayout& page_layout() const final { return layout_; }
  std::span<const kv::memory::AttentionSpec> groups() const final { return groups_; }
  std::size_t threads() const final { return pool_.threads(); }
  const Backend* draft_backend() const final { return draft_backend_.get(); }
  std::uint64_t kv_bytes() const final;
  std::uint64_t kv_tokens() const final;
  std::uint64_t sequences_at(std::uint64_t tokens) const final;
  std::optional<std::uint64_t> context_asked() const final { return context_asked_; }
  std::string rows_id() const final { return rows_id_; }
  std::string numerics_id() const final { return numerics_id_; }
  void use_tiers(const TierOptions& tiers) final;

 protected:
  explicit PagedBackend(const BackendOptions& options);

  ThreadPool& pool() { return pool_; }
  std::uint64_t blocks() const { return cache_->pool().blocks(); }
  // Returns the bytes of a block in the device's memory; the host cannot read those of a GPU.
  virtual std::span<std::byte> page(kv::BlockId block) = 0;

  using OnDeduplicate = std::function<void(kv::BlockId mine, kv::BlockId existing)>;
  // Makes the cache of `blocks` blocks.
  void open_cache(const BackendOptions& options, const kv::memory::CacheGroupPlan& plan,
                  std::uint32_t blocks, OnDeduplicate on_deduplicate);

  // Sets core_options(), rows_id() and numerics_id(). The runner must be there: it says how many
  // launches run ahead. `numerics_id` is the name and version of the arithmetic, the first part of
  // rows_id(). An error when not even the shortest request fits into the cache, with both numbers.
  Status open_core(const model::Config& config, const BackendOptions& options,
                   std::string_view numerics_id);

  // Returns the options of the draft model's backend, before its memory is known. It keeps keys and
  // values as the model does, where its rows can be kept so: no answer depends on them.
  static BackendOptions draft_options(const BackendOptions& options, const model::Config& config,
                                      std::size_t threads);
  // Returns the share of KV memory in which this cache holds as many tokens as the draft model's.
  static double share_beside(const kv::memory::CacheGroupPlan& mine,
                             const kv::memory::CacheGroupPlan& drafts);
  // Returns the bytes in which a draft model's cache holds as many tokens as this one.
  std::uint64_t bytes_for_drafts(const kv::memory::CacheGroupPlan& drafts) const;
  // Drafts by the model of the options, which `backend` computes. After open_core().
  void use_draft_model(const BackendOptions& options, std::unique_ptr<PagedBackend> backend);

 private:
  ThreadPool pool_;
  kv::memory::PageLayout layout_;
  std::vector<kv::memory::AttentionSpec> groups_;
  std::optional<kv::Cache> cache_;
  CoreOptions core_options_;
  std::string mixed_elements_;  // which layers keep which, where they differ
  std::string rows_id_;
  std::string numerics_id_;
  std::optional<std::uint64_t> context_asked_;
  std::shared_ptr<const void> draft_owner_;
  std::unique_ptr<PagedBackend> draft_backend_;  // nullptr: no model drafts
  std::optional<DraftModel> draft_model_;        // over that
};

}  // namespace pagoda::engine
