#include "engine/backends/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/byte_size.h"
#include "engine/backends/kv_budget.h"
#include "model/kv_groups.h"

namespace pagoda::engine {
namespace {

kv::memory::CacheGroupPlan draft_group_plan(const model::Decoder& decoder,
                                            const BackendOptions& options) {
  return model::plan_kv_groups(*options.draft_model->config, decoder.kernel_set(), {},
                               options.block_tokens);
}

}  // namespace

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
  RETURN_IF_ERROR(model::check_kv_cache_dtype(config, options.kv_cache_dtype));
  std::unique_ptr<CpuBackend> backend(new CpuBackend(config, weights, kernels, options));
  RETURN_IF_ERROR(backend->allocate_pages(options));
  const model::Decoder& decoder = backend->decoder_;
  backend->open_cache(options, decoder.group_plan(), backend->pages_->pages(),
                      backend->duplicate_check(options));
  backend->runner_.emplace(backend->decoder_, *backend->pages_, backend->pool());
  const kernels::KernelSet& used = decoder.kernel_set();
  RETURN_IF_ERROR(
      backend->open_core(config, options, fmt::format("{}.{}", used.name, used.version)));
  if (options.draft_model) RETURN_IF_ERROR(backend->open_draft_model(config, options));
  return backend;
}

Status CpuBackend::allocate_pages(const BackendOptions& options) {
  const kv::memory::PageLayout& layout = decoder_.page_layout();
  std::uint64_t bytes = 0;
  if (options.kv_bytes) {
    bytes = *options.kv_bytes;
  } else {
    ASSIGN_OR_RETURN(const std::uint64_t available, memory_available());
    bytes = static_cast<std::uint64_t>(static_cast<double>(available) * kKvMemoryShare);
  }
  if (options.draft_model) {
    bytes = static_cast<std::uint64_t>(
        static_cast<double>(bytes) *
        share_beside(decoder_.group_plan(), draft_group_plan(decoder_, options)));
  }
  const std::uint64_t blocks = std::min<std::uint64_t>(bytes / layout.page_bytes(), UINT32_MAX);
  if (blocks == 0) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`kv_cache_memory_bytes`: {} hold no block, one takes {}",
                             format_byte_size(static_cast<double>(bytes)),
                             format_byte_size(static_cast<double>(layout.page_bytes())))};
  }
  ASSIGN_OR_RETURN(pages_,
                   kv::memory::PageBuffer::allocate(layout, static_cast<std::uint32_t>(blocks)));
  return ok_status();
}

Status CpuBackend::open_draft_model(const model::Config& config, const BackendOptions& options) {
  const DraftModelParts& parts = *options.draft_model;
  BackendOptions made = draft_options(options, config, threads());
  made.kv_bytes = bytes_for_drafts(draft_group_plan(decoder_, options));
  ASSIGN_OR_RETURN(std::unique_ptr<CpuBackend> backend,
                   create(*parts.config, *parts.weights, decoder_.kernel_set(), made));
  use_draft_model(options, std::move(backend));
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
