// RanksBackend is a model that several ranks compute together (model/division.h), each in a process
// of its own. Scheduler, cache and sampling are here; weights and pages are the ranks'.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/backends/paged_backend.h"
#include "engine/backends/ranks_runner.h"
#include "ranks/rank_group.h"

namespace pagoda::engine {

// A rank says this about itself once it has loaded its part.
struct RankFacts {
  std::uint64_t page_bytes = 0;
  std::uint64_t weight_bytes = 0;  // that it has packed
};

// Ranks that have loaded a model and wait for their pages.
struct LoadedRanks {
  std::shared_ptr<void> owner;  // of the processes, which end with it
  std::unique_ptr<ranks::RankGroup> group;
  std::vector<RankFacts> facts;  // [rank]
  std::uint64_t threads = 1;     // of each
};

class RanksBackend final : public PagedBackend {
 public:
  // Refuses options that ranks cannot follow, by name: before any rank is started.
  static Status check(const model::Config& config, const BackendOptions& options,
                      std::uint32_t ranks);
  // Config and the kernel set must outlive the backend. The cache takes options.kv_bytes, or
  // kKvMemoryShare of free memory, of all ranks together.
  static Result<std::unique_ptr<RanksBackend>> create(const model::Config& config,
                                                      const kernels::KernelSet& kernels,
                                                      const BackendOptions& options,
                                                      LoadedRanks ranks);

  Runner& runner() override { return *runner_; }
  std::string device_name() const override;
  std::string kernel_set() const override { return std::string(kernels_.name); }
  std::vector<RankMemory> ranks() const override;
  std::uint64_t bytes_exchanged_per_token() const override { return bytes_per_token_; }
  // Pages are in other processes: tiers were refused.
  Result<std::unique_ptr<kv::PageCopier>> create_page_copier() override {
    return std::unique_ptr<kv::PageCopier>();
  }

 private:
  RanksBackend(const kernels::KernelSet& kernels, const BackendOptions& options, LoadedRanks ranks);
  Result<std::uint32_t> allocate_pages(const BackendOptions& options);
  std::span<std::byte> page(kv::BlockId block) override;

  const kernels::KernelSet& kernels_;
  LoadedRanks ranks_;
  std::uint64_t bytes_per_token_ = 0;
  std::optional<RanksRunner> runner_;
};

}  // namespace pagoda::engine
