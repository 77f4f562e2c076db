// The fixture has a core over the toy model and one scripted tier, driven by hand on a clock that
// stands still.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/core.h"
#include "engine/engine_fixture.h"
#include "engine/tiers/scripted_store.h"
#include "engine/tiers/tiers.h"
#include "sim/page_oracle.h"
#include "sim/toy_runner.h"

namespace pagoda::engine {

struct ToyFixtureOptions {
  std::vector<kv::memory::AttentionSpec> groups = {{}};
  std::uint32_t blocks = 200;
  std::uint32_t block_tokens = 4;
  WriteMode write = WriteMode::kThrough;
  LoadMode load = LoadMode::kAuto;
  std::uint32_t writes_running_max = 32;
  std::uint32_t writes_queued_max = 8192;
  double tokens_per_second = 1e5;           // of the model; 0: unknown
  std::vector<kv::PageStore*> nearer = {};  // stores before the fixture's own
  std::vector<kv::PageStore*> farther = {};
  std::uint32_t launches_ahead = 0;
  speculate::Drafter* drafter = nullptr;
  kv::EventRing* events = nullptr;
};

class ToyFixture {
 public:
  explicit ToyFixture(const ToyFixtureOptions& options = {})
      : model_{.groups = options.groups, .vocabulary = 50},
        cache_({.blocks = options.blocks,
                .block_tokens = options.block_tokens,
                .groups = options.groups,
                .sessions = true,
                .hash_blocks = true,
                .events = options.events,
                .on_deduplicate = {}}),
        runner_(model_, options.blocks, options.block_tokens, options.launches_ahead) {
    clock_.advance_ns(1);
    CoreOptions core;
    core.scheduler.sequences_max = 8;
    core.scheduler.batched_tokens_max = 64;
    core.limits = {.vocabulary = model_.vocabulary, .context_tokens = 400, .sequences_max = 8};
    core.space = "toy";
    core.end_tokens = {sim::ToyModel::kEnd};
    core.drafter = options.drafter;
    runner_.set_drafts_max(options.drafter == nullptr ? 0 : speculate::kDraftTokensMax);
    core.tiers.stores = options.nearer;
    core.tiers.stores.push_back(&store);
    core.tiers.stores.insert(core.tiers.stores.end(), options.farther.begin(),
                             options.farther.end());
    core.tiers.write = options.write;
    core.tiers.load = options.load;
    core.tiers.writes_running_max = options.writes_running_max;
    core.tiers.writes_queued_max = options.writes_queued_max;
    core.tiers.tokens_per_second = options.tokens_per_second;
    core.tiers.page_at = [this](kv::BlockId block) { return runner_.page(block); };
    core.tiers.owner_tag = [](kv::OwnerId owner) {
      return kv::OwnerTag{{static_cast<std::byte>(owner.value() + 1)}};
    };
    core_.emplace(core, cache_, tenants, runner_, clock_);
    core_->set_space({});
  }

  // Stores end their running operations before the core does.
  ~ToyFixture() {
    store.holds_reads = store.holds_writes = false;
    store.end_writes();
  }

  std::shared_ptr<TestSink> submit(const Request& request) {
    auto heard = std::make_shared<TestSink>(request.sampling.n);
    core_->submit(RequestId(++requests_), request, heard);
    return heard;
  }
  // Runs so many steps, as long as there is anything to do or on its way; time passes between them.
  void run(int steps = 200, std::int64_t step_ns = 1000) {
    const auto goes_on = [&] {
      return core_->step() || core_->requests_open() > 0 || core_->move_pages();
    };
    for (int i = 0; i < steps && goes_on(); ++i) {
      clock_.advance_ns(step_ns);
      core_->check();
    }
  }
  // Evicts idle blocks, as in a restart; free blocks may hold anything.
  void clear_pool() {
    cache_.clear();
    for (std::uint32_t i = 0; i < cache_.pool().blocks(); ++i) {
      if (cache_.pool().state(kv::BlockId(i)) == kv::BlockState::kFree) {
        runner_.spoil(kv::BlockId(i));
      }
    }
  }
  // Returns the output of the request alone.
  std::vector<TokenId> alone(const Request& request) const {
    return model_.generate_single(request.prompt, 0,
                                  request.prompt.size() + *request.end.max_tokens);
  }
  // Empty when every page holds the rows of its tokens.
  std::string wrong_page() { return sim::wrong_page(cache_, runner_); }
  void pass_ns(std::int64_t ns) { clock_.advance_ns(ns); }

  kv::Cache& cache() { return cache_; }
  Core& core() { return *core_; }
  sim::ToyRunner& runner() { return runner_; }

  ScriptedStore store;
  sched::TenantTable tenants;

 private:
  sim::ToyModel model_;
  ManualClock clock_;
  kv::Cache cache_;
  sim::ToyRunner runner_;
  std::optional<Core> core_;
  std::uint64_t requests_ = 0;
};

inline Request toy_request(std::uint64_t prompt_tokens, std::uint32_t output_tokens = 3) {
  Request request;
  for (std::uint64_t i = 0; i < prompt_tokens; ++i) {
    request.prompt.push_back(TokenId(static_cast<std::uint32_t>(1 + (i * i + i / 3) % 49)));
  }
  request.end.max_tokens = output_tokens;
  return request;
}

}  // namespace pagoda::engine
