#include "engine/backends/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/byte_size.h"
#include "engine/backends/kv_budget.h"
#include "model/kv_groups.h"

namespace pagoda::engine {
namespace {

// Returns the bytes of a block in all groups.
std::uint64_t block_bytes(const kv::memory::CacheGroupPlan& plan) {
  return plan.groups.size() * std::uint64_t{plan.layouts.front().page_bytes()};
}

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
  if (options.draft_model) RETURN_IF_ERROR(backend->open_draft_model(options));
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
    const std::uint64_t mine = block_bytes(decoder_.group_plan());
    const std::uint64_t both = mine + block_bytes(draft_group_plan(decoder_, options));
    bytes = static_cast<std::uint64_t>(static_cast<double>(bytes) * static_cast<double>(mine) /
                                       static_cast<double>(both));
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

// The draft model's cache holds as many tokens as the model's own. It keeps keys and values in the
// default format: no answer depends on them.
Status CpuBackend::open_draft_model(const BackendOptions& options) {
  const DraftModelParts& parts = *options.draft_model;
  BackendOptions made;
  made.threads = threads();
  made.block_tokens = options.block_tokens;
  made.kv_bytes = kv_bytes() / block_bytes(decoder_.group_plan()) *
                  block_bytes(draft_group_plan(decoder_, options));
  made.context_tokens =
      std::min(core_options().limits.context_tokens, std::uint64_t{parts.config->context});
  made.prefix_caching = options.prefix_caching;
  made.kv_eviction = options.kv_eviction;
  made.quota_share = options.quota_share;
  made.quota_share_public = options.quota_share_public;
  made.scheduler = options.scheduler;
  made.model_name = parts.name;
  made.on_pack = parts.on_pack;
  ASSIGN_OR_RETURN(draft_backend_,
                   create(*parts.config, *parts.weights, decoder_.kernel_set(), made));
  const CoreOptions& core = draft_backend_->core_options();
  draft_owner_ = parts.owner;
  draft_model_.emplace(DraftModelOptions{.space = core.space,
                                         .vocabulary = parts.config->vocabulary,
                                         .context_tokens = core.limits.context_tokens,
                                         .rows_max = options.scheduler.batched_tokens_max},
                       draft_backend_->cache(), draft_backend_->runner());
  use_draft_model(*draft_model_);
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
