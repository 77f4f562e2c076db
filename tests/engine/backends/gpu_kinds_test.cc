// One model of every kind of layer (windows, latents, experts, sinks, heads of two sizes, shared KV
// layers) through the engine on a GPU: neighbours, cache, preemption, forks and tiers change no
// answer, and blocks of the same tokens have the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>

#include "engine/backends/gpu_engine_fixture.h"
#include "kernels/cuda/open_gpu.h"
#include "store/host/host_store.h"

namespace pagoda::gpu_test {
namespace {

using engine::Request;
using engine::TestSink;

std::vector<Request> kind_requests(const model::Config& config, std::size_t count) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < count; ++i) {
    Request request;
    request.prompt = model::random_tokens(config, 5 + i * 37 % 290, 7 + i % 3);
    request.end.max_tokens = 10 + static_cast<std::uint32_t>(i % 5);
    request.sampling.seed = i;
    if (i % 3 == 1) request.sampling.temperature = 0.8f;
    if (i % 4 == 2) request.sampling.logprobs = 3;
    if (i % 5 == 3) request.sampling.n = 3;
    requests.push_back(request);
  }
  return requests;
}

struct Kind {
  const char* model;
  KvChoice choice = {};
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.model; }

class GpuKinds : public testing::TestWithParam<Kind> {
 protected:
  const model::TestModel model_{
      model::test_model_path(std::string("arch_") + GetParam().model + ".gguf")};
  const std::vector<Request> requests_ = kind_requests(model_.config(), 12);

  static FixtureOptions with_choice(FixtureOptions options = {}) {
    options.kv_cache_dtype = GetParam().choice.elements;
    options.kv_policy = GetParam().choice.policy;
    return options;
  }
  std::vector<std::shared_ptr<TestSink>> each_alone() const {
    std::vector<std::shared_ptr<TestSink>> alone;
    for (const Request& request : requests_) {
      GpuEngineFixture gpu(model_, with_choice());
      alone.push_back(gpu.submit(request));
      gpu.run();
    }
    return alone;
  }
};

TEST_P(GpuKinds, NeighboursCacheDraftsAndPreemptionChangeNoAnswer) {
  REQUIRE_GPU();
  const auto alone = each_alone();
  std::uint64_t joins = 0;
  const auto compare = [&](std::span<const std::byte> mine, std::span<const std::byte> existing) {
    ++joins;
    EXPECT_TRUE(std::ranges::equal(mine, existing)) << "join " << joins;
  };
  speculate::RecordedDrafter drafter = drafter_of(requests_, alone, model_.config().vocabulary);
  const FixtureOptions all[] = {{},
                                {.batched_tokens = 48, .graphs = false},
                                {.blocks = 400, .batched_tokens = 64},
                                {.drafter = &drafter},
                                {.blocks = 400, .batched_tokens = 64, .drafter = &drafter}};
  for (FixtureOptions options : all) {
    options.on_deduplicate = compare;
    GpuEngineFixture gpu(model_, with_choice(options));
    for (int round = 0; round < 2; ++round) {  // the second one finds prefixes in the cache
      std::vector<std::shared_ptr<TestSink>> heard;
      for (const Request& request : requests_) heard.push_back(gpu.submit(request));
      gpu.run();
      for (std::size_t i = 0; i < requests_.size(); ++i) expect_same(*heard[i], *alone[i], i);
    }
    if (options.drafter == nullptr) continue;
    EXPECT_GT(gpu.counters().drafts.accepted, 30u);
  }
  EXPECT_GT(joins, 0u);
}

TEST_P(GpuKinds, PagesThatCameBackGiveTheSameAnswers) {
  REQUIRE_GPU();
  const auto alone = each_alone();
  GpuEngineFixture gpu(
      model_,
      with_choice({.blocks = 400, .batched_tokens = 64, .open_store = [](engine::Backend& backend) {
                     const std::uint64_t page_bytes = backend.page_layout().page_bytes();
                     auto copier = backend.create_page_copier();
                     EXPECT_TRUE(copier.ok());
                     return store::HostStore::open(
                                {.bytes_max = 4096 * page_bytes, .page_bytes = page_bytes},
                                std::move(copier).value())
                         .value();
                   }}));
  std::uint64_t loaded = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<TestSink>> heard;
    for (const Request& request : requests_) heard.push_back(gpu.submit(request));
    gpu.run();
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      expect_same(*heard[i], *alone[i], i);
      loaded += heard[i]->answers[0].record.load.tokens_loaded();
    }
  }
  RecordProperty("tokens_loaded", static_cast<int>(loaded));
}

using kv::memory::Element;
constexpr kv::KvPolicy kStreaming = {.window = 40, .sinks = 4};

INSTANTIATE_TEST_SUITE_P(
    Models, GpuKinds,
    testing::Values(Kind{"deepseek3"}, Kind{"gemma2"}, Kind{"gemma3"}, Kind{"gemma4"},
                    Kind{"gemma4_shared"}, Kind{"gpt_oss"}, Kind{"olmo2"}, Kind{"qwen3moe"},
                    Kind{"deepseek3_fp8", {Element::kE4M3}},
                    Kind{"gemma4_shared", {Element::kE4M3}}, Kind{"gpt_oss", {Element::kE4M3}},
                    Kind{"deepseek3_fp8", {Element::kInt8}},
                    Kind{"gemma4_shared", {Element::kInt8}}, Kind{"gpt_oss", {Element::kInt8}},
                    Kind{"qwen3moe", {{Element::kBF16, Element::kInt8}}},
                    Kind{"deepseek3", {Element::kBF16, kStreaming}},
                    Kind{"deepseek3_fp8", {Element::kInt8, kStreaming}},
                    Kind{"gemma3", {Element::kBF16, kStreaming}},
                    Kind{"gpt_oss", {Element::kInt8, kStreaming}}),
    [](const auto& instance) { return instance.param.model + choice_name(instance.param.choice); });

}  // namespace
}  // namespace pagoda::gpu_test
