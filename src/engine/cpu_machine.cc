#include "engine/cpu_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/byte_size.h"
#include "base/random.h"
#include "engine/kv_budget.h"

namespace pagoda::engine {
namespace {

std::string rows_id_of(const model::Decoder& decoder) {
  const kernels::KernelSet& kernels = decoder.kernel_set();
  return fmt::format("{}.{} {}", kernels.name, kernels.version,
                     kv::memory::format_name(decoder.page_layout()));
}

// Evictions that are remembered: as many as there are blocks, in 147 KB to 9.4 MB.
std::uint32_t departures_for(std::uint64_t blocks) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 4096, 1u << 18));
}

}  // namespace

CpuMachine::CpuMachine(const model::Config& config, const model::Weights& weights,
                       const kernels::KernelSet& kernels, const CpuMachineOptions& options)
    : pool_(options.threads > 0 ? options.threads : usable_cores()),
      decoder_(config, weights, kernels, pool_,
               {.rows_max = options.scheduler.batched_tokens_max,
                .kv_element = options.kv_element,
                .block_tokens = options.block_tokens,
                .on_pack = options.on_pack}) {}

Result<std::unique_ptr<CpuMachine>> CpuMachine::create(const model::Config& config,
                                                       const model::Weights& weights,
                                                       const kernels::KernelSet& kernels,
                                                       const CpuMachineOptions& options) {
  std::unique_ptr<CpuMachine> machine(new CpuMachine(config, weights, kernels, options));
  RETURN_IF_ERROR(machine->take_pages(options));
  machine->rows_id_ = rows_id_of(machine->decoder_);
  machine->core_options_ = {
      .scheduler = options.scheduler,
      .limits = {.vocabulary = config.vocabulary,
                 .context_tokens =
                     options.context_tokens > 0 ? options.context_tokens : config.context,
                 .answers_max = options.scheduler.sequences_max},
      .space = fmt::format("{} {}", options.model_name, machine->rows_id_),
      .end_tokens = options.end_tokens,
      .tiers = {}};
  RETURN_IF_ERROR(machine->fit_context(options));
  return machine;
}

Status CpuMachine::take_pages(const CpuMachineOptions& options) {
  const kv::memory::PageLayout& layout = decoder_.page_layout();
  std::uint64_t bytes = 0;
  if (options.kv_bytes) {
    bytes = *options.kv_bytes;
  } else {
    ASSIGN_OR_RETURN(const std::uint64_t available, memory_available());
    bytes = static_cast<std::uint64_t>(static_cast<double>(available) * kKvMemoryShare);
  }
  const std::uint64_t blocks = std::min<std::uint64_t>(bytes / layout.page_bytes(), UINT32_MAX);
  if (blocks == 0) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("--kv-cache-memory-bytes: {} hold no block, one takes {}",
                             format_byte_size(static_cast<double>(bytes)),
                             format_byte_size(static_cast<double>(layout.page_bytes())))};
  }
  kv_bytes_ = blocks * layout.page_bytes();
  ASSIGN_OR_RETURN(pages_,
                   kv::memory::PageBuffer::allocate(layout, static_cast<std::uint32_t>(blocks)));
  const auto blocks_of = [&](double share) {
    return static_cast<std::uint64_t>(share * static_cast<double>(blocks));
  };
  kv::CacheOptions cache = {.blocks = static_cast<std::uint32_t>(blocks),
                            .block_tokens = options.block_tokens,
                            .slices = decoder_.slice_plan().slices,
                            .policy = options.kv_eviction,
                            .hash_seed = fresh_seed(),
                            .quota_blocks_private = blocks_of(options.quota_share),
                            .quota_blocks_public = blocks_of(options.quota_share_public),
                            .retain_blocks_max = blocks_of(options.retain_share),
                            .departures_max = departures_for(blocks),
                            .name_blocks = options.name_blocks,
                            .live_curve = options.live_curve,
                            .events = options.kv_events,
                            .share = options.prefix_caching};
#ifdef PAGODA_DEV_CHECKS
  cache.on_join = [this](kv::BlockId mine, kv::BlockId existing) {
    ASSERT(
        std::memcmp(pages_->page(mine), pages_->page(existing), pages_->layout().page_bytes()) == 0,
        "the same tokens gave the same bytes");
  };
#endif
  cache_.emplace(cache);
  runner_.emplace(decoder_, *pages_, pool_);
  return ok_status();
}

// A request alone must always fit.
Status CpuMachine::fit_context(const CpuMachineOptions& options) {
  const sched::Footprint footprint = {.slices = decoder_.slice_plan().slices,
                                      .block_tokens = options.block_tokens,
                                      .chunk_tokens_max = options.scheduler.batched_tokens_max};
  const auto fits = [&](std::uint64_t tokens) {
    return footprint.blocks_alone(tokens) <= cache_->pool().blocks();
  };
  std::uint64_t& context = core_options_.limits.context_tokens;
  if (fits(context)) return ok_status();
  std::uint64_t low = 1;  // at least two tokens: one to read, one to write
  std::uint64_t high = context;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  if (low < 2) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("--kv-cache-memory-bytes: {} are {} blocks, the shortest request "
                             "needs {}",
                             format_byte_size(static_cast<double>(kv_bytes_)),
                             cache_->pool().blocks(), footprint.blocks_alone(2))};
  }
  context_asked_ = context;
  context = low;
  return ok_status();
}

void CpuMachine::use_tiers(const TierOptions& tiers) {
  ASSERT(cache_->names_blocks(), "tiers know pages by name");
  core_options_.tiers = tiers;
  core_options_.tiers.page_at = [this](kv::BlockId block) {
    return std::span(pages_->page(block), pages_->layout().page_bytes());
  };
}

std::uint64_t CpuMachine::kv_tokens() const {
  const std::uint64_t slices = decoder_.slice_plan().slices.size();
  return cache_->pool().blocks() / slices * decoder_.page_layout().block_tokens;
}

}  // namespace pagoda::engine
