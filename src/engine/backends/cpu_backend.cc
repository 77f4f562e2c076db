#include "engine/backends/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/byte_size.h"
#include "engine/backends/kv_budget.h"
#include "model/kv_groups.h"

namespace pagoda::engine {

CpuBackend::CpuBackend(const model::Config& config, const model::Weights& weights,
                       const kernels::KernelSet& kernels, const BackendOptions& options)
    : PagedBackend(options),
      decoder_(config, weights, kernels, pool(),
               {.rows_max = options.scheduler.batched_tokens_max,
                .kv_cache_dtype = options.kv_cache_dtype,
                .block_tokens = options.block_tokens,
                .on_pack = options.on_pack}) {}

Result<std::unique_ptr<CpuBackend>> CpuBackend::create(const model::Config& config,
                                                       const model::Weights& weights,
                                                       const kernels::KernelSet& kernels,
                                                       const BackendOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<CpuBackend> backend, load(config, weights, kernels, options));
  if (!options.draft_model) {
    RETURN_IF_ERROR(backend->open(config, options, 1));
    return backend;
  }
  const DraftModelParts& parts = *options.draft_model;
  BackendOptions made = draft_options(options, config, backend->threads());
  ASSIGN_OR_RETURN(std::unique_ptr<CpuBackend> drafts,
                   load(*parts.config, *parts.weights, backend->decoder_.kernel_set(), made));
  const kv::memory::CacheGroupPlan& draft_plan = drafts->decoder_.group_plan();
  RETURN_IF_ERROR(
      backend->open(config, options, share_beside(backend->decoder_.group_plan(), draft_plan)));
  made.kv_bytes = backend->bytes_for_drafts(draft_plan);
  RETURN_IF_ERROR(drafts->open(*parts.config, made, 1));
  backend->use_draft_model(options, std::move(drafts));
  return backend;
}

Result<std::unique_ptr<CpuBackend>> CpuBackend::load(const model::Config& config,
                                                     const model::Weights& weights,
                                                     const kernels::KernelSet& kernels,
                                                     const BackendOptions& options) {
  RETURN_IF_ERROR(model::check_kv_cache_dtype(config, options.kv_cache_dtype));
  return std::unique_ptr<CpuBackend>(new CpuBackend(config, weights, kernels, options));
}

Status CpuBackend::open(const model::Config& config, const BackendOptions& options, double share) {
  RETURN_IF_ERROR(allocate_pages(options, share));
  open_cache(options, decoder_.group_plan(), pages_->pages(), duplicate_check(options));
  runner_.emplace(decoder_, *pages_, pool());
  const kernels::KernelSet& used = decoder_.kernel_set();
  return open_core(config, options, fmt::format("{}.{}", used.name, used.version));
}

Status CpuBackend::allocate_pages(const BackendOptions& options, double share) {
  const kv::memory::PageLayout& layout = decoder_.page_layout();
  ASSIGN_OR_RETURN(std::uint64_t bytes, cache_bytes(options.kv_bytes));
  if (share < 1) bytes = static_cast<std::uint64_t>(static_cast<double>(bytes) * share);
  const std::uint64_t blocks = std::min<std::uint64_t>(bytes / layout.page_bytes(), UINT32_MAX);
  if (blocks == 0) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`kv_cache_memory_bytes`: {} hold no block, one takes {}",
                             format_byte_size(static_cast<double>(bytes)),
                             format_byte_size(static_cast<double>(layout.page_bytes())))};
  }
  auto pages = kv::memory::PageBuffer::allocate(layout, static_cast<std::uint32_t>(blocks));
  if (!pages.ok()) {
    return Error{pages.error().code,
                 fmt::format("{}; a smaller `kv_cache_memory_bytes` may fit, as half of the free "
                             "memory does, which is the default",
                             pages.error().message)};
  }
  pages_ = std::move(pages).value();
  return ok_status();
}

// Tests may compare the pages of a duplicate; dev builds compare them anyway.
PagedBackend::OnDeduplicate CpuBackend::duplicate_check(const BackendOptions& options) {
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
    on_deduplicate(page(mine), page(existing));
  };
}

std::span<std::byte> CpuBackend::page(kv::BlockId block) {
  return {pages_->page(block), pages_->layout().page_bytes()};
}

std::string CpuBackend::device_name() const {
  return fmt::format("{} thread{}", threads(), threads() == 1 ? "" : "s");
}

}  // namespace pagoda::engine
