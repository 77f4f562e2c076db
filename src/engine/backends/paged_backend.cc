#include "engine/backends/paged_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/byte_size.h"
#include "base/random.h"
#include "kv/memory/blocks_held.h"
#include "kv/tiers/page_store.h"
#include "model/kv_groups.h"
#include "model/rows_description.h"
#include "sched/block_demand.h"

namespace pagoda::engine {
namespace {

// The cache remembers as many evictions as it has blocks, in 147 KB to 9.4 MB.
std::uint32_t eviction_records_for(std::uint64_t blocks) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 4096, 1u << 18));
}

kv::CacheOptions cache_options(const BackendOptions& options, std::uint32_t blocks,
                               const std::vector<kv::memory::AttentionSpec>& groups) {
  const auto blocks_of = [&](double share) {
    return static_cast<std::uint64_t>(share * static_cast<double>(blocks));
  };
  return {.blocks = blocks,
          .block_tokens = options.block_tokens,
          .groups = groups,
          .policy = options.kv_eviction,
          .hash_seed = fresh_seed(),
          .quota_blocks_private = blocks_of(options.quota_share),
          .quota_blocks_public = blocks_of(options.quota_share_public),
          .retain_blocks_max = blocks_of(options.retain_share),
          .sessions = options.sessions,
          .session_timeout_ns = static_cast<std::int64_t>(options.session_timeout_s * 1e9),
          .eviction_records_max = eviction_records_for(blocks),
          .hash_blocks = options.hash_blocks,
          .find_by_hash = options.hash_blocks && options.find_by_hash,
          .live_curve = options.live_curve,
          .events = options.kv_events,
          .share = options.prefix_caching};
}

// Returns the longest context up to `asked` whose request alone fits into `blocks`. An error when
// not even two tokens do: one to read, one to write.
Result<std::uint64_t> fitting_context(const sched::BlockDemand& demand,
                                      sched::BlockDemand::Groups groups, std::uint64_t asked,
                                      std::uint32_t blocks, std::uint64_t kv_bytes) {
  const std::uint64_t longest = demand.tokens_alone(groups, asked, blocks);
  if (longest >= 2) return longest;
  return Error{ErrorCode::kOutOfRange,
               fmt::format("`kv_cache_memory_bytes`: {} are {} blocks, the shortest request needs "
                           "{}",
                           format_byte_size(static_cast<double>(kv_bytes)), blocks,
                           demand.blocks_alone(groups, 2))};
}

// Returns the bytes of a block in all groups.
double block_bytes(const kv::memory::CacheGroupPlan& plan) {
  return static_cast<double>(plan.groups.size() * plan.layouts.front().page_bytes());
}

// A space and 16 hexadecimal digits; nothing of nothing.
std::string short_digest(const std::string& text) {
  if (text.empty()) return {};
  const kv::SpaceId id = kv::space_id(text);
  std::uint64_t first = 0;
  std::memcpy(&first, id.digest.data(), sizeof(first));
  return fmt::format(" {:016x}", first);
}

// Which layers keep which elements; nothing where all keep the same.
std::string describe_mixed_elements(const kv::memory::CacheGroupPlan& plan) {
  const auto same = [&](const kv::memory::PageLayout& layout) {
    return layout.elements == plan.layouts.front().elements;
  };
  if (std::ranges::all_of(plan.layouts, same)) return {};
  std::string text;
  for (const kv::memory::LayerLocation& at : plan.locations) {
    text += fmt::format(" {}", kv::memory::format_name(plan.layouts[at.group]));
  }
  return text;
}

// A draft model's cache keeps what its model's does, where its rows can be kept so: no answer
// depends on it. Layers that the model leaves out of its choice are not the draft model's.
model::KvCacheDtype draft_dtype(const BackendOptions& options) {
  model::KvCacheDtype inherited;
  inherited.keys = options.kv_cache_dtype.keys;
  inherited.values = options.kv_cache_dtype.values;
  const bool fits = model::check_kv_cache_dtype(*options.draft_model->config, inherited).ok();
  return fits ? inherited : model::KvCacheDtype();
}

}  // namespace

std::uint64_t context_wanted(const BackendOptions& options, const model::Config& config) {
  return options.context_tokens > 0 ? options.context_tokens : config.context;
}

PagedBackend::PagedBackend(const BackendOptions& options)
    : pool_(options.threads > 0 ? options.threads : usable_cores()) {}

void PagedBackend::open_cache(const BackendOptions& options, const kv::memory::CacheGroupPlan& plan,
                              std::uint32_t blocks, OnDeduplicate on_deduplicate) {
  layout_ = plan.layouts.front();
  groups_ = plan.groups;
  mixed_elements_ = describe_mixed_elements(plan);
  kv::CacheOptions cache = cache_options(options, blocks, groups_);
  cache.on_deduplicate = std::move(on_deduplicate);
  cache_.emplace(cache);
}

Status PagedBackend::open_core(const model::Config& config, const BackendOptions& options,
                               std::string_view numerics_id) {
  const std::uint64_t wanted = context_wanted(options, config);
  const sched::BlockDemand demand = {
      .block_tokens = options.block_tokens,
      .chunk_tokens_max = options.scheduler.batched_tokens_max * (runner().launches_ahead() + 1)};
  ASSIGN_OR_RETURN(const std::uint64_t fitting,
                   fitting_context(demand, groups_, wanted, cache_->pool().blocks(), kv_bytes()));
  if (fitting < wanted) context_asked_ = wanted;
  rows_id_ = fmt::format("{} {}{}", numerics_id, kv::memory::format_name(layout_),
                         short_digest(model::describe_rows(config) + mixed_elements_));
  numerics_id_ = fmt::format("{}{}", numerics_id, short_digest(model::describe_rows(config)));
  const bool bounds_nothing = std::ranges::all_of(
      groups_, [](const kv::memory::AttentionSpec& group) { return group.window != 0; });
  core_options_ = {.scheduler = options.scheduler,
                   .limits = {.vocabulary = config.vocabulary,
                              .context_tokens = fitting,
                              .sequences_max = options.scheduler.sequences_max,
                              .kv_policy = options.kv_policy,
                              .policy_tokens_max = demand.bounded_tokens_alone(
                                  groups_, fitting, cache_->pool().blocks())},
                   .space = fmt::format("{} {}", options.model_name, rows_id_),
                   .end_tokens = options.end_tokens,
                   .tiers = {},
                   .speculation = options.speculation,
                   .drafter = options.drafter};
  if (bounds_nothing) {
    core_options_.limits.policies_refused =
        "every layer of the model has a sliding window of its own";
  }
  if (!runner().observes_attention()) {
    core_options_.limits.selections_refused =
        "this device does not observe attention; window and streaming policies work";
  }
  core_options_.limits.block_tokens = options.block_tokens;
  core_options_.limits.context_asked = context_asked_.value_or(0);
  return check_policy(options.kv_policy, core_options_.limits);
}

std::uint64_t PagedBackend::kv_bytes() const {
  return cache_->pool().blocks() * std::uint64_t{layout_.page_bytes()};
}

std::uint64_t PagedBackend::kv_tokens() const {
  return cache_->pool().blocks() / groups_.size() * layout_.block_tokens;
}

std::uint64_t PagedBackend::sequences_at(std::uint64_t tokens) const {
  std::uint64_t held = 0;
  for (const kv::memory::AttentionSpec& group : groups_) {
    held += kv::memory::blocks_held(group, tokens, layout_.block_tokens);
  }
  return cache_->pool().blocks() / held;
}

BackendOptions PagedBackend::draft_options(const BackendOptions& options,
                                           const model::Config& config, std::size_t threads) {
  const DraftModelParts& parts = *options.draft_model;
  BackendOptions made;
  made.threads = threads;
  made.kv_cache_dtype = draft_dtype(options);
  made.block_tokens = options.block_tokens;
  made.context_tokens =
      std::min(context_wanted(options, config), std::uint64_t{parts.config->context});
  made.prefix_caching = options.prefix_caching;
  made.kv_eviction = options.kv_eviction;
  made.quota_share = options.quota_share;
  made.quota_share_public = options.quota_share_public;
  made.scheduler = options.scheduler;
  made.model_name = parts.name;
  made.on_pack = parts.on_pack;
  return made;
}

double PagedBackend::share_beside(const kv::memory::CacheGroupPlan& mine,
                                  const kv::memory::CacheGroupPlan& drafts) {
  return block_bytes(mine) / (block_bytes(mine) + block_bytes(drafts));
}

std::uint64_t PagedBackend::bytes_for_drafts(const kv::memory::CacheGroupPlan& drafts) const {
  return cache_->pool().blocks() / groups_.size() * static_cast<std::uint64_t>(block_bytes(drafts));
}

void PagedBackend::use_draft_model(const BackendOptions& options,
                                   std::unique_ptr<PagedBackend> backend) {
  const DraftModelParts& parts = *options.draft_model;
  draft_owner_ = parts.owner;
  draft_backend_ = std::move(backend);
  const CoreOptions& core = draft_backend_->core_options();
  draft_model_.emplace(DraftModelOptions{.space = core.space,
                                         .vocabulary = parts.config->vocabulary,
                                         .context_tokens = core.limits.context_tokens,
                                         .rows_max = options.scheduler.batched_tokens_max},
                       draft_backend_->cache(), draft_backend_->runner());
  core_options_.draft_model = &*draft_model_;
}

void PagedBackend::use_tiers(const TierOptions& tiers) {
  ASSERT(cache_->hashes().enabled(), "tiers know pages by their hashes");
  core_options_.tiers = tiers;
  core_options_.tiers.page_at = [this](kv::BlockId block) { return page(block); };
}

}  // namespace pagoda::engine
