#include "engine/backends/ranks_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/byte_size.h"
#include "engine/backends/kv_budget.h"
#include "model/division.h"
#include "model/kv_groups.h"
#include "ranks/communicator.h"

namespace pagoda::engine {
namespace {

BackendOptions with_threads(BackendOptions options, std::uint64_t threads) {
  options.threads = threads;
  return options;
}

Error refused(std::uint32_t ranks, const char* why) {
  return {ErrorCode::kUnsupported, fmt::format("`tensor_parallel_size` {}: {}", ranks, why)};
}

}  // namespace

Status RanksBackend::check(const model::Config& config, const BackendOptions& options,
                           std::uint32_t ranks) {
  if (ranks > ranks::kRanksMax) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`tensor_parallel_size` {}: at most {}", ranks, ranks::kRanksMax)};
  }
  if (options.draft_model) {
    return refused(ranks, "a draft model runs on one rank alone; n-gram drafts work");
  }
  if (options.hash_blocks) {
    return refused(ranks, "KV tiers outside the pool hold the pages of one rank; leave them out");
  }
  return model::check_kv_cache_dtype(config, options.kv_cache_dtype);
}

// The host samples with as many threads as a rank has.
RanksBackend::RanksBackend(const kernels::KernelSet& kernels, const BackendOptions& options,
                           LoadedRanks ranks)
    : PagedBackend(with_threads(options, ranks.threads)),
      kernels_(kernels),
      ranks_(std::move(ranks)) {}

Result<std::unique_ptr<RanksBackend>> RanksBackend::create(const model::Config& config,
                                                           const kernels::KernelSet& kernels,
                                                           const BackendOptions& options,
                                                           LoadedRanks ranks) {
  std::unique_ptr<RanksBackend> backend(new RanksBackend(kernels, options, std::move(ranks)));
  const auto exchanged = model::exchanged_bytes(config, backend->ranks_.group->ranks());
  backend->bytes_per_token_ = exchanged.row + exchanged.logits;
  ASSIGN_OR_RETURN(const std::uint32_t blocks, backend->allocate_pages(options));
  backend->open_cache(
      options, model::plan_kv_groups(config, kernels, options.kv_cache_dtype, options.block_tokens),
      blocks, {});
  backend->runner_.emplace(config, kernels, options.block_tokens,
                           options.scheduler.batched_tokens_max, *backend->ranks_.group,
                           backend->pool());
  RETURN_IF_ERROR(
      backend->open_core(config, options, fmt::format("{}.{}", kernels.name, kernels.version)));
  return backend;
}

// Ranks have as many pages, each of its own size.
Result<std::uint32_t> RanksBackend::allocate_pages(const BackendOptions& options) {
  std::uint64_t block_bytes = 0;
  for (const RankFacts& facts : ranks_.facts) block_bytes += facts.page_bytes;
  ASSIGN_OR_RETURN(const std::uint64_t bytes, cache_bytes(options.kv_bytes));
  const auto blocks =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes / block_bytes, UINT32_MAX));
  if (blocks == 0) {
    return Error{
        ErrorCode::kOutOfRange,
        fmt::format("`kv_cache_memory_bytes`: {} hold no block, one takes {} on {} ranks",
                    format_byte_size(static_cast<double>(bytes)),
                    format_byte_size(static_cast<double>(block_bytes)), ranks_.facts.size())};
  }
  ranks::RankGroup& group = *ranks_.group;
  RETURN_IF_ERROR(
      group.send_to_all(ranks::MessageKind::kPages, std::as_bytes(std::span(&blocks, 1))));
  for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) {
    RETURN_IF_ERROR(group.receive(rank, ranks::MessageKind::kReady));
  }
  return blocks;
}

std::span<std::byte> RanksBackend::page(kv::BlockId /*block*/) {
  ASSERT(false, "pages of ranks are in their processes");
  return {};
}

std::string RanksBackend::device_name() const {
  return fmt::format("{} ranks of {} thread{}", ranks_.facts.size(), ranks_.threads,
                     ranks_.threads == 1 ? "" : "s");
}

std::vector<RankMemory> RanksBackend::ranks() const {
  std::vector<RankMemory> memory;
  for (const RankFacts& facts : ranks_.facts) {
    memory.push_back({.weight_bytes = facts.weight_bytes, .kv_bytes = facts.page_bytes * blocks()});
  }
  return memory;
}

}  // namespace pagoda::engine
