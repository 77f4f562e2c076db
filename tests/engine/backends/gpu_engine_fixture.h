// A core over a GPU backend, driven by hand.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/backends/gpu_backend.h"
#include "engine/core.h"
#include "engine/engine_fixture.h"
#include "engine/tiers/tiers.h"
#include "model/gpu_model.h"
#include "speculate/recorded_drafter.h"

namespace pagoda::gpu_test {

// A KV format and a KV policy: what answers depend on, and what nothing else may change.
struct KvChoice {
  kv::memory::Elements elements = kv::memory::Element::kBF16;
  kv::KvPolicy policy = {};
};
// Every format with the full context, and policies with the kinds of formats.
inline std::vector<KvChoice> kv_choices() {
  using kv::memory::Element;
  std::vector<KvChoice> choices;
  for (const kv::memory::Elements elements : kGpuPairs) choices.push_back({elements, {}});
  const kv::memory::Elements bounded[] = {Element::kBF16,
                                          Element::kE4M3,
                                          Element::kInt8,
                                          Element::kInt4,
                                          {Element::kInt8, Element::kInt4}};
  for (const kv::memory::Elements elements : bounded) {
    choices.push_back({elements, {.window = 50}});
    choices.push_back({elements, {.window = 70, .sinks = 4}});
  }
  return choices;
}
inline std::string choice_name(const KvChoice& choice) {
  const std::string name = cache_name(choice.elements);
  if (choice.policy.is_full()) return name;
  return name + (choice.policy.sinks > 0 ? "Streaming" : "Window");
}
inline void PrintTo(const KvChoice& choice, std::ostream* out) { *out << choice_name(choice); }

struct FixtureOptions {
  std::uint32_t blocks = 4096;
  std::uint32_t batched_tokens = 512;
  bool graphs = true;
  model::KvCacheDtype kv_cache_dtype = {};
  kv::KvPolicy kv_policy = {};  // of requests that name none
  std::uint64_t context_tokens = 2048;
  bool random_weights = false;  // of the model's shape, made on the GPU
  // Is told of the bytes of blocks that were computed twice.
  std::function<void(std::span<const std::byte>, std::span<const std::byte>)> on_deduplicate = {};
  speculate::Drafter* drafter = nullptr;
  std::optional<model::ModelParts> draft_model = {};  // drafts up to 4 tokens whatever they cost
  // A tier for the backend's pages: everything is written to it and read from it.
  std::function<std::unique_ptr<kv::PageStore>(engine::Backend&)> open_store = {};
};

class GpuEngineFixture {
 public:
  GpuEngineFixture(const model::ModelParts& model, const FixtureOptions& options) {
    engine::BackendOptions backend;
    backend.kv_cache_dtype = options.kv_cache_dtype;
    backend.kv_policy = options.kv_policy;
    backend.on_deduplicate = options.on_deduplicate;
    backend.context_tokens = options.context_tokens;
    backend.drafter = options.drafter;
    if (options.draft_model) {
      using speculate::DraftMethod;
      backend.speculation.methods = speculate::MethodSet(DraftMethod::kDraftModel);
      backend.speculation.weighs_costs = false;
      backend.speculation.tokens_max = 4;
      backend.draft_model = {.name = "draft",
                             .config = &options.draft_model->config,
                             .weights = &options.draft_model->weights};
    }
    backend.scheduler.sequences_max = 16;
    backend.scheduler.batched_tokens_max = options.batched_tokens;
    backend.hash_blocks = options.open_store != nullptr;
    const engine::GpuBackendOptions gpu = {.blocks = options.blocks, .graphs = options.graphs};
    const kernels::KernelSet& kernels = kernels::ref_set();
    auto made =
        options.random_weights
            ? engine::create_gpu_backend(model.config, engine::RandomWeights{}, kernels, backend,
                                         gpu)
            : engine::create_gpu_backend(model.config, model.weights, kernels, backend, gpu);
    EXPECT_TRUE(made.ok()) << made.error().message;
    if (!made.ok()) std::abort();
    backend_ = std::move(made).value();
    if (options.open_store) {
      store_ = options.open_store(*backend_);
      engine::TierOptions tiers;
      tiers.stores = {store_.get()};
      tiers.write = engine::WriteMode::kThrough;
      tiers.load = engine::LoadMode::kAlways;
      backend_->use_tiers(tiers);
    }
    core_ = std::make_unique<engine::Core>(backend_->core_options(), backend_->cache(), tenants_,
                                           backend_->runner(), clock_);
    if (store_) core_->set_space(kv::space_id(backend_->rows_id()));
  }

  std::shared_ptr<engine::TestSink> submit(const engine::Request& request) {
    auto heard = std::make_shared<engine::TestSink>(request.sampling.n);
    core_->submit(engine::RequestId(requests_++), request, heard);
    return heard;
  }
  // Until nothing is left to do and no page is on its way.
  void run() {
    for (;;) {
      if (core_->step()) continue;
      if (!core_->move_pages() && core_->requests_open() == 0) break;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    core_->check();
  }
  const engine::Counters& counters() const { return core_->counters(); }
  engine::Core& core() { return *core_; }
  engine::Backend& backend() { return *backend_; }

 private:
  std::unique_ptr<engine::Backend> backend_;
  std::unique_ptr<kv::PageStore> store_;
  sched::TenantTable tenants_;
  SteadyClock clock_;
  std::unique_ptr<engine::Core> core_;
  std::uint64_t requests_ = 0;
};

inline void expect_same(const engine::TestSink& got, const engine::TestSink& alone,
                        std::size_t number) {
  ASSERT_TRUE(engine::same_scores(got.prompt_scores, alone.prompt_scores)) << "request " << number;
  for (std::size_t a = 0; a < alone.answers.size(); ++a) {
    ASSERT_TRUE(alone.answers[a].reason.has_value());
    ASSERT_EQ(alone.answers[a].message, "");
    ASSERT_EQ(got.answers[a].tokens, alone.answers[a].tokens)
        << "request " << number << ", answer " << a;
    ASSERT_TRUE(engine::same_scores(got.answers[a].scores, alone.answers[a].scores))
        << "request " << number << ", answer " << a;
  }
}

// Drafts the answers that requests had, one of four tokens wrong.
inline speculate::RecordedDrafter drafter_of(
    std::span<const engine::Request> requests,
    std::span<const std::shared_ptr<engine::TestSink>> answers, std::uint32_t vocabulary) {
  speculate::RecordedDrafter drafter(
      {.wrong = 0.25, .tokens_max = 9, .vocabulary = vocabulary, .seed = 5});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (const engine::TestSink::Given& given : answers[i]->answers) {
      std::vector<TokenId> all = requests[i].prompt;
      all.insert(all.end(), given.tokens.begin(), given.tokens.end());
      drafter.record(std::move(all));
    }
  }
  return drafter;
}

}  // namespace pagoda::gpu_test
