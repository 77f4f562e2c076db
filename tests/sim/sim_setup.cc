#include "sim/sim_setup.h"

#include <algorithm>

#include "sched/block_demand.h"

namespace pagoda::sim {
namespace {

using kv::memory::AttentionSpec;

void draw_machine(Dice& dice, SimSetup& setup) {
  setup.model.vocabulary = static_cast<std::uint32_t>(dice.between(2, 24));
  const std::vector<std::vector<AttentionSpec>> shapes = {
      {{}}, {{}}, {{}, {.window = 5}}, {{.window = 7}}, {{.window = 3}, {}, {.window = 3}}};
  setup.model.groups = dice.pick(shapes);
  setup.cache.groups = setup.model.groups;
  setup.cache.block_tokens = dice.pick(std::vector<std::uint32_t>{1, 2, 4, 16});
  setup.cache.blocks = static_cast<std::uint32_t>(dice.between(6, 60) * setup.model.groups.size());
  setup.cache.share = !dice.one_in(8);
  setup.cache.hash_seed = dice.between(0, 1000);
  setup.cache.policy = dice.pick(std::vector<const kv::EvictionPolicy*>(
      kv::eviction_policies().begin(), kv::eviction_policies().end()));
  if (dice.one_in(3)) setup.cache.quota_blocks_private = dice.between(1, setup.cache.blocks);
  if (dice.one_in(3)) setup.cache.quota_blocks_public = dice.between(1, setup.cache.blocks);
  if (dice.one_in(2)) setup.cache.retain_blocks_max = dice.between(1, setup.cache.blocks);
  setup.cache.live_curve = dice.one_in(4);
  setup.cache.eviction_records_max = static_cast<std::uint32_t>(dice.between(0, 40));
  setup.launches_ahead = dice.one_in(2) ? 1 : 0;
  setup.step_ns_max = dice.one_in(4) ? 100000 : 1000;

  sched::SchedulerOptions& scheduler = setup.core.scheduler;
  scheduler.sequences_max = static_cast<std::uint32_t>(dice.between(1, 8));
  scheduler.batched_tokens_max =
      scheduler.sequences_max + static_cast<std::uint32_t>(dice.between(0, 40));
  scheduler.long_prefill_tokens =
      static_cast<std::uint32_t>(dice.one_in(2) ? 0 : dice.between(1, 9));
  scheduler.shared_step_tokens = static_cast<std::uint32_t>(dice.between(1, 40));
  scheduler.inactive_steps = dice.between(0, 60);
  scheduler.look_again_steps = static_cast<std::uint32_t>(dice.between(1, 32));
  scheduler.passes_max = static_cast<std::uint32_t>(dice.between(0, 6));
  scheduler.candidates_max = static_cast<std::uint32_t>(dice.between(1, 8));
  scheduler.prefix_waits_max = static_cast<std::uint32_t>(dice.between(0, 30));
  if (dice.one_in(3)) {
    scheduler.context_classes = sched::ContextClasses::parse("8:1,24:0.6,max:0.4").value();
  }
}

void draw_tiers(Dice& dice, SimSetup& setup) {
  if (!dice.one_in(2)) return;
  setup.cache.hash_blocks = true;
  for (std::uint64_t i = dice.between(1, 2); i > 0; --i) {
    setup.stores.push_back(
        {.pages_max = dice.between(1, 200),
         .latency_ns_max = static_cast<std::int64_t>(dice.one_in(3) ? 100000 : 3000),
         .asks = dice.one_in(3),
         .one_fails_in = static_cast<std::uint32_t>(dice.one_in(3) ? 0 : dice.between(2, 30)),
         .operations_max = static_cast<std::uint32_t>(dice.between(1, 64))});
  }
  engine::TierOptions& tiers = setup.core.tiers;
  tiers.write = dice.pick(std::vector{engine::WriteMode::kUse, engine::WriteMode::kThrough,
                                      engine::WriteMode::kThrough, engine::WriteMode::kOff});
  tiers.load = dice.one_in(2) ? engine::LoadMode::kAlways : engine::LoadMode::kAuto;
  tiers.loads_max = static_cast<std::uint32_t>(dice.between(1, 6));
  tiers.reads_running_max = static_cast<std::uint32_t>(dice.between(1, 20));
  tiers.writes_running_max = static_cast<std::uint32_t>(dice.between(1, 10));
  tiers.writes_queued_max = static_cast<std::uint32_t>(dice.between(1, 40));
  tiers.space_wait_ns = static_cast<std::int64_t>(dice.between(0, 5000));
  if (dice.one_in(2)) tiers.tokens_per_second = static_cast<double>(dice.between(1, 40)) * 1e6;
  if (dice.one_in(3)) setup.space_known_ns = static_cast<std::int64_t>(dice.between(1, 20000));
  setup.crossed = dice.one_in(3);
  if (!setup.crossed) return;
  // Loads begin, and then their tasks compute: pages come late or not at all.
  for (SimStoreOptions& store : setup.stores) {
    store.one_fails_in = static_cast<std::uint32_t>(dice.between(2, 6));
    store.latency_ns_max = 100000;
  }
  tiers.write = engine::WriteMode::kThrough;
  tiers.load = engine::LoadMode::kAuto;
}

sched::TenantLimits draw_limits(Dice& dice, const SimSetup& setup) {
  sched::TenantLimits limits;
  limits.weight = static_cast<double>(dice.between(1, 4));
  const std::uint32_t answers = setup.core.scheduler.sequences_max;
  if (dice.one_in(3)) {
    limits.sequences_running = static_cast<std::uint32_t>(dice.between(1, answers));
  }
  if (dice.one_in(4)) limits.requests_queued = static_cast<std::uint32_t>(dice.between(1, 4));
  if (dice.one_in(4)) limits.kv_tokens = dice.between(10, 60);
  if (dice.one_in(6)) limits.tokens_per_minute = dice.between(30, 300);
  if (dice.one_in(4)) limits.output_tokens = dice.between(1, 30);
  if (dice.one_in(4)) limits.output_tokens_default = dice.between(1, 30);
  return limits;
}

void draw_tenants(Dice& dice, SimSetup& setup) {
  for (std::uint64_t i = dice.between(0, 2); i > 0; --i) {
    setup.tenants.push_back(draw_limits(dice, setup));
  }
  if (!setup.tenants.empty() && dice.one_in(3)) {
    setup.removal_ns = static_cast<std::int64_t>(dice.between(1, 60000));
  }
  if (setup.tenants.empty() || !dice.one_in(3)) return;
  std::int64_t at_ns = 0;
  for (std::uint64_t i = dice.between(1, 4); i > 0; --i) {
    at_ns += static_cast<std::int64_t>(dice.between(1, 20000));
    const auto tenant = static_cast<std::uint32_t>(dice.between(1, setup.tenants.size()));
    setup.limit_changes.push_back({at_ns, sched::TenantId(tenant), draw_limits(dice, setup)});
  }
}

sched::BlockDemand demand_of(const SimSetup& setup) {
  return {.block_tokens = setup.cache.block_tokens,
          .chunk_tokens_max = setup.core.scheduler.batched_tokens_max * (setup.launches_ahead + 1)};
}

// Draws the owner of the prompt's blocks. `crossed`: the same tokens are public, salted, and public
// up to somewhere, all at once.
void draw_region(Dice& dice, bool crossed, engine::Request& request) {
  if (!crossed) {
    if (dice.one_in(4)) request.cache_salt = dice.one_in(2) ? "a" : "b";
    if (!request.cache_salt.empty() && dice.one_in(2)) request.public_tokens = dice.between(0, 40);
    return;
  }
  if (dice.one_in(3)) return;
  request.cache_salt = "a";
  if (dice.one_in(2)) request.public_tokens = dice.between(0, 80);
}

engine::Request draw_request(Dice& dice, const SimSetup& setup,
                             const std::vector<std::vector<TokenId>>& texts) {
  engine::Request request;
  const std::uint64_t context = setup.core.limits.context_tokens;
  const std::vector<TokenId>& text = dice.pick(texts);
  const std::uint64_t shared = std::min<std::uint64_t>(text.size(), dice.between(0, context - 1));
  request.prompt.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(shared));
  const std::uint64_t own = dice.between(0, 6);
  for (std::uint64_t i = 0; i < own || request.prompt.empty(); ++i) {
    request.prompt.push_back(
        TokenId(static_cast<std::uint32_t>(dice.between(0, setup.model.vocabulary - 1))));
  }
  if (!dice.one_in(3)) request.end.max_tokens = static_cast<std::uint32_t>(dice.between(1, 30));
  request.sampling.n = dice.one_in(4) ? static_cast<std::uint32_t>(dice.between(1, 4)) : 1;
  request.priority = dice.one_in(3) ? static_cast<std::int32_t>(dice.between(0, 2)) - 1 : 0;
  request.tenant =
      sched::TenantId(static_cast<std::uint32_t>(dice.between(0, setup.tenants.size())));
  draw_region(dice, setup.crossed, request);
  if (dice.one_in(8)) request.timeout_ns = static_cast<std::int64_t>(dice.between(1, 40000));
  if (dice.one_in(10)) request.sampling.prompt_logprobs = 0;
  request.explain = !dice.one_in(4);
  if (dice.one_in(3)) {  // as much and as long as allowed, now and then
    request.retain = {.tokens = dice.between(1, request.prompt.size()),
                      .time_ns = static_cast<std::int64_t>(
                          dice.between(1, static_cast<std::uint64_t>(setup.retain_ns_max))),
                      .priority = static_cast<std::uint32_t>(dice.between(0, 3))};
  }
  return request;
}

// Requests of a few sessions, and some that only move what the cache has. They have dice of their
// own: everything else stays as it is without them.
void draw_sessions(std::uint64_t seed, SimSetup& setup) {
  Dice dice(seed + 1'000'003);
  if (dice.one_in(3)) return;
  setup.cache.sessions = true;
  setup.cache.session_timeout_ns = static_cast<std::int64_t>(dice.between(0, 30000));
  for (PlannedRequest& drawn : setup.requests) {
    engine::Request& request = drawn.request;
    if (!dice.one_in(3)) request.session = dice.one_in(2) ? "main" : "other";
    request.first_turn_tokens = dice.between(0, request.prompt.size());
    if (!dice.one_in(8)) continue;
    request.action = dice.one_in(2) ? engine::CacheAction::kPrefetch : engine::CacheAction::kDemote;
    request.sampling = {};
    request.retain.reset();
  }
}

// Requests that keep a window of their tokens, and sinks, some of them beyond the context. They too
// have dice of their own.
void draw_policies(std::uint64_t seed, SimSetup& setup) {
  Dice dice(seed + 2'000'029);
  if (dice.one_in(2)) return;
  const std::vector<kv::KvPolicy> policies = {{.window = 4},
                                              {.window = 2, .sinks = 1},
                                              {.window = 5, .sinks = 3},
                                              {.window = 3, .sinks = 9},
                                              {.window = 20, .sinks = 17}};
  for (PlannedRequest& drawn : setup.requests) {
    engine::Request& request = drawn.request;
    if (!dice.one_in(2)) continue;
    request.kv_policy = dice.pick(policies);
    if (dice.one_in(2)) request.end.max_tokens = static_cast<std::uint32_t>(dice.between(1, 200));
  }
}

// Half of the seeds have drafts: of every kind by the simulation, or by the methods there are.
void draw_speculation(std::uint64_t seed, SimSetup& setup) {
  using speculate::DraftMethod;
  Dice dice(seed + 3'000'073);
  if (dice.one_in(2)) return;
  setup.drafts = !dice.one_in(3);
  speculate::SpeculationOptions& options = setup.core.speculation;
  options.tokens_max = static_cast<std::uint32_t>(dice.between(1, speculate::kDraftTokensMax));
  options.lookup_min = static_cast<std::uint32_t>(dice.between(1, 3));
  options.lookup_max = options.lookup_min + 2;
  options.methods =
      speculate::MethodSet(DraftMethod::kTree, DraftMethod::kSuffix, DraftMethod::kPrediction);
  if (dice.one_in(2)) options.methods.insert(DraftMethod::kNgram);
  for (PlannedRequest& drawn : setup.requests) {
    if (dice.one_in(8)) {
      drawn.request.draft_tokens_max = static_cast<std::uint32_t>(dice.between(0, 3));
    }
    if (dice.one_in(3)) {
      drawn.request.prediction =
          std::make_shared<speculate::PredictedText>(dice.pick(setup.requests).request.prompt);
    }
  }
}

// An ITL target in half of the seeds, with dice of its own as well: from one that no step keeps to
// one that bounds little.
void draw_itl_target(std::uint64_t seed, SimSetup& setup) {
  Dice dice(seed + 5'000'011);
  if (dice.one_in(2)) return;
  setup.core.scheduler.itl_target_s = 1e-9 * static_cast<double>(dice.between(1, 200'000));
}

// A model drafts in a third of the seeds without drafts of the simulation's own, in a cache that
// may be too small for it. It has dice of its own, as those above.
void draw_draft_model(std::uint64_t seed, SimSetup& setup) {
  using speculate::DraftMethod;
  Dice dice(seed + 6'000'023);
  if (setup.drafts || !dice.one_in(3)) return;
  setup.draft_model_blocks = static_cast<std::uint32_t>(dice.between(1, 80));
  setup.draft_vocabulary = setup.model.vocabulary - (dice.one_in(8) ? 1 : 0);
  speculate::SpeculationOptions& options = setup.core.speculation;
  if (dice.one_in(2)) options.methods = {};
  options.methods.insert(DraftMethod::kDraftModel);
  options.weighs_costs = dice.one_in(2);
  options.tokens_max = static_cast<std::uint32_t>(dice.between(1, 12));
}

// Requests whose text ends before their tokens would end them, with dice of their own as well.
void draw_text_ends(std::uint64_t seed, SimSetup& setup) {
  Dice dice(seed + 4'000'037);
  if (dice.one_in(2)) return;
  for (PlannedRequest& drawn : setup.requests) {
    if (!dice.one_in(2) || drawn.request.action != engine::CacheAction::kNone) continue;
    drawn.last_token =
        TokenId(static_cast<std::uint32_t>(dice.between(1, setup.model.vocabulary - 1)));
  }
}

// Requests whose pages are selected by attention, with dice of their own as well.
void draw_selections(std::uint64_t seed, SimSetup& setup) {
  Dice dice(seed + 3'000'017);
  if (dice.one_in(3)) return;
  setup.core.limits.context_asked = 200;  // more than the pool holds
  setup.core.limits.block_tokens = setup.cache.block_tokens;
  for (PlannedRequest& drawn : setup.requests) {
    if (!dice.one_in(2)) continue;
    const auto budget = static_cast<std::uint32_t>(dice.between(2, 40));
    kv::KvPolicy policy = dice.one_in(2) ? kv::KvPolicy::h2o(budget) : kv::KvPolicy::snapkv(budget);
    policy.observed = static_cast<std::uint32_t>(dice.between(1, budget - 1));
    if (policy.choice == kv::PageChoice::kSnapKv) {
      policy.kernel = 2 * static_cast<std::uint32_t>(dice.between(0, 4)) + 1;
    }
    drawn.request.kv_policy = policy;
    if (dice.one_in(3)) {
      drawn.request.end.max_tokens = static_cast<std::uint32_t>(dice.between(1, 150));
    }
  }
}

}  // namespace

SimSetup draw_setup(std::uint64_t seed) {
  Dice dice(seed);
  SimSetup setup;
  draw_machine(dice, setup);
  draw_tiers(dice, setup);
  draw_tenants(dice, setup);
  setup.core.space = "toy";
  setup.core.end_tokens = {ToyModel::kEnd};
  setup.core.requests_queued_max = static_cast<std::uint32_t>(dice.one_in(6) ? 3 : 1000);
  setup.core.limits = {
      .vocabulary = setup.model.vocabulary,
      .context_tokens = std::max<std::uint64_t>(
          1, demand_of(setup).tokens_alone(setup.model.groups, 120, setup.cache.blocks)),
      .sequences_max = setup.core.scheduler.sequences_max};
  setup.core.limits.policy_tokens_max = demand_of(setup).bounded_tokens_alone(
      setup.model.groups, setup.core.limits.context_tokens, setup.cache.blocks);

  std::vector<std::vector<TokenId>> texts(setup.crossed ? 1 : 3);
  for (std::vector<TokenId>& text : texts) {
    for (std::uint64_t i = dice.between(0, 80); i > 0; --i) {
      text.push_back(
          TokenId(static_cast<std::uint32_t>(dice.between(0, setup.model.vocabulary - 1))));
    }
  }
  std::int64_t now = 0;
  const bool burst = dice.one_in(3);
  for (std::uint64_t i = dice.between(1, setup.stores.empty() ? 24 : 60); i > 0; --i) {
    if (!burst) now += static_cast<std::int64_t>(dice.between(0, 4000));
    const std::int64_t cancel =
        dice.one_in(6) ? now + static_cast<std::int64_t>(dice.between(1, 20000)) : 0;
    setup.requests.push_back({now, cancel, draw_request(dice, setup, texts)});
  }
  draw_sessions(seed, setup);
  draw_policies(seed, setup);
  draw_speculation(seed, setup);
  draw_draft_model(seed, setup);
  draw_selections(seed, setup);
  draw_text_ends(seed, setup);
  draw_itl_target(seed, setup);
  return setup;
}

}  // namespace pagoda::sim
