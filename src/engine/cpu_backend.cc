#include "engine/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/byte_size.h"
#include "engine/backend_cache.h"
#include "engine/kv_budget.h"

namespace pagoda::engine {
namespace {

std::string rows_id_of(const model::Decoder& decoder) {
  const kernels::KernelSet& kernels = decoder.kernel_set();
  return fmt::format("{}.{} {}", kernels.name, kernels.version,
                     kv::memory::format_name(decoder.page_layout()));
}

}  // namespace

CpuBackend::CpuBackend(const model::Config& config, const model::Weights& weights,
                       const kernels::KernelSet& kernels, const CpuBackendOptions& options)
    : pool_(options.threads > 0 ? options.threads : usable_cores()),
      decoder_(config, weights, kernels, pool_,
               {.rows_max = options.scheduler.batched_tokens_max,
                .kv_element = options.kv_element,
                .block_tokens = options.block_tokens,
                .on_pack = options.on_pack}) {}

Result<std::unique_ptr<CpuBackend>> CpuBackend::create(const model::Config& config,
                                                       const model::Weights& weights,
                                                       const kernels::KernelSet& kernels,
                                                       const CpuBackendOptions& options) {
  RETURN_IF_ERROR(model::check_kv_element(options.kv_element));
  std::unique_ptr<CpuBackend> backend(new CpuBackend(config, weights, kernels, options));
  RETURN_IF_ERROR(backend->take_pages(options));
  backend->rows_id_ = rows_id_of(backend->decoder_);
  backend->core_options_ = {
      .scheduler = options.scheduler,
      .limits = {.vocabulary = config.vocabulary,
                 .context_tokens =
                     options.context_tokens > 0 ? options.context_tokens : config.context,
                 .sequences_max = options.scheduler.sequences_max},
      .space = fmt::format("{} {}", options.model_name, backend->rows_id_),
      .end_tokens = options.end_tokens,
      .tiers = {}};
  RETURN_IF_ERROR(backend->fit_context(options));
  return backend;
}

Status CpuBackend::take_pages(const CpuBackendOptions& options) {
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
  kv::CacheOptions cache =
      cache_options(options, static_cast<std::uint32_t>(blocks), decoder_.group_plan().groups);
  cache.on_deduplicate = duplicate_check(options);
  cache_.emplace(cache);
  runner_.emplace(decoder_, *pages_, pool_);
  return ok_status();
}

// Whoever asked is told; dev builds compare by themselves.
std::function<void(kv::BlockId, kv::BlockId)> CpuBackend::duplicate_check(
    const CpuBackendOptions& options) {
  auto on_deduplicate = options.on_deduplicate;
#ifdef PAGODA_DEV_CHECKS
  if (!on_deduplicate) {
    on_deduplicate = [](std::span<const std::byte> mine, std::span<const std::byte> existing) {
      ASSERT(std::ranges::equal(mine, existing), "the same tokens gave the same bytes");
    };
  }
#endif
  if (!on_deduplicate) return {};
  return [this, on_deduplicate](kv::BlockId mine, kv::BlockId existing) {
    const std::size_t bytes = pages_->layout().page_bytes();
    on_deduplicate({pages_->page(mine), bytes}, {pages_->page(existing), bytes});
  };
}

// A request alone must always fit.
Status CpuBackend::fit_context(const CpuBackendOptions& options) {
  const sched::BlockDemand demand = {.groups = decoder_.group_plan().groups,
                                     .block_tokens = options.block_tokens,
                                     .chunk_tokens_max = options.scheduler.batched_tokens_max};
  std::uint64_t& context = core_options_.limits.context_tokens;
  ASSIGN_OR_RETURN(const std::uint64_t fitting,
                   fitting_context(demand, context, cache_->pool().blocks(), kv_bytes_));
  if (fitting < context) context_asked_ = context;
  context = fitting;
  return ok_status();
}

void CpuBackend::use_tiers(const TierOptions& tiers) {
  ASSERT(cache_->hashes().enabled(), "tiers know pages by name");
  core_options_.tiers = tiers;
  core_options_.tiers.page_at = [this](kv::BlockId block) {
    return std::span(pages_->page(block), pages_->layout().page_bytes());
  };
}

std::string CpuBackend::device_name() const { return fmt::format("{} threads", threads()); }

std::uint64_t CpuBackend::kv_tokens() const {
  const std::uint64_t groups = decoder_.group_plan().groups.size();
  return cache_->pool().blocks() / groups * decoder_.page_layout().block_tokens;
}

}  // namespace pagoda::engine
