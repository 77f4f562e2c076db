// An engine whose model is computed by several ranks gives what it gives with one, whatever
// requests ask for; and a rank that is gone costs requests, never an answer.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "engine/backends/ranks_backend.h"
#include "engine/request_mix.h"
#include "model/seeded_model.h"
#include "ranks/thread_workers.h"
#include "speculate/recorded_drafter.h"

namespace pagoda::engine {
namespace {

using gguf::TensorType;
using kv::memory::Element;
using kv::memory::Elements;

const kernels::KernelSet& fastest() { return *kernels::available_sets().back(); }

struct MixCase {
  model::ModelCase model;
  std::optional<Elements> elements = {};
  std::uint32_t ranks = 2;
  std::uint64_t blocks = 70;  // memory is short: some requests are preempted
  bool has_masks = false;
  bool has_drafts = false;
};
void PrintTo(const MixCase& c, std::ostream* out) {
  *out << c.model.title() << " on " << c.ranks << " ranks";
}

BackendOptions options_of(const model::ModelParts& model, const MixCase& c) {
  BackendOptions options;
  options.threads = 1;
  if (c.elements) options.kv_cache_dtype = *c.elements;
  options.block_tokens = 4;
  options.scheduler.sequences_max = 8;
  options.scheduler.batched_tokens_max = 24;
  options.kv_bytes = 1 << 20;
  const auto probe = CpuBackend::create(model.config, model.weights, fastest(), options);
  options.kv_bytes = c.blocks * probe.value()->page_layout().page_bytes();
  return options;
}

std::vector<std::shared_ptr<TestSink>> run_all(EngineFixture& fixture,
                                               const std::vector<Request>& requests) {
  std::vector<std::shared_ptr<TestSink>> got;
  for (const Request& request : requests) got.push_back(fixture.submit(request));
  fixture.run();
  return got;
}

speculate::RecordedDrafter drafter_of(const model::ModelParts& model,
                                      const std::vector<Request>& requests,
                                      const std::vector<std::shared_ptr<TestSink>>& alone) {
  speculate::RecordedDrafter drafter(
      {.wrong = 0.2, .vocabulary = model.config.vocabulary, .seed = 5});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (const TestSink::Given& given : alone[i]->answers) {
      std::vector<TokenId> sequence = requests[i].prompt;
      sequence.insert(sequence.end(), given.tokens.begin(), given.tokens.end());
      drafter.record(std::move(sequence));
    }
  }
  return drafter;
}

class EngineOverRanks : public testing::TestWithParam<MixCase> {};

// Twice: the second round finds the first one cached.
TEST_P(EngineOverRanks, TheirNumberChangesNoOutput) {
  const model::AnyModel model(GetParam().model);
  const model::ModelParts parts = model.parts();
  std::vector<Request> requests = draw_requests(parts.config, 8, 40, 16);
  for (std::size_t i = 0; GetParam().has_masks && i < requests.size(); ++i) {
    requests[i].kv_policy = kv::KvPolicy{.window = 9 + 3 * static_cast<std::uint32_t>(i / 2),
                                         .sinks = static_cast<std::uint32_t>(i / 2)};
  }
  BackendOptions options = options_of(parts, GetParam());
  BackendOptions roomy = options;
  roomy.kv_bytes = 64 << 20;
  EngineFixture whole(parts.config, parts.weights, roomy, fastest());
  const auto alone = run_all(whole, requests);
  speculate::RecordedDrafter drafter = drafter_of(parts, requests, alone);
  EngineFixture fixture(ThreadWorkers::backend(parts, fastest(), options, GetParam().ranks),
                        GetParam().has_drafts ? &drafter : nullptr);
  for (int round = 0; round < 2; ++round) expect_same(run_all(fixture, requests), alone);
  EXPECT_GT(fixture.backend().runner().bytes_exchanged(), 0u);
  EXPECT_EQ(fixture.core().counters().drafts.accepted > 0, GetParam().has_drafts);
  EXPECT_EQ(fixture.backend().rows_id(), whole.backend().rows_id());
}

INSTANTIATE_TEST_SUITE_P(
    Mixes, EngineOverRanks,
    testing::Values(
        MixCase{.model = {"stories260K"}, .ranks = 3, .has_drafts = true},
        MixCase{.model = {"tiny_mqa"}, .elements = Element::kF16},
        MixCase{.model = {"llama_Q4_1", model::small_shape(TensorType::kQ4_1, false)},
                .elements = Elements(Element::kInt8, Element::kInt4),
                .has_drafts = true},
        MixCase{.model = {"arch_gemma3"}, .ranks = 4, .blocks = 220, .has_masks = true},
        MixCase{.model = {"arch_gpt_oss"}, .blocks = 220, .has_masks = true},
        MixCase{.model = {.name = "arch_qwen3moe", .quantised = TensorType::kQ4_0}, .ranks = 3},
        MixCase{.model = {"arch_gemma4_shared"}, .ranks = 3, .blocks = 120},
        MixCase{.model = {"arch_deepseek3"}, .elements = Element::kInt8, .has_masks = true}),
    [](const auto& instance) { return instance.param.model.title(); });

Request plain_request(const model::Config& config, std::uint32_t tokens) {
  Request request;
  request.prompt = model::random_tokens(config, 30, 7);
  request.end.max_tokens = tokens;
  request.end.ignore_eos = true;
  return request;
}

TEST(EngineOverRanks, HiddenStatesAreThoseOfOneRank) {
  const model::TestModel& model = stories();
  const BackendOptions options = options_of(model, {});
  const auto pooled = [&](EngineFixture& fixture) {
    Request request = plain_request(model.config(), 1);
    request.pooling = Pooling::kMean;
    const auto heard = fixture.submit(request);
    fixture.run();
    return heard->answers[0].record.embedding;
  };
  EngineFixture whole(model, options, fastest());
  EngineFixture over(ThreadWorkers::backend(model, fastest(), options, 2));
  const std::vector<float> expected = pooled(whole);
  EXPECT_EQ(expected.size(), model.config().width);
  EXPECT_EQ(pooled(over), expected);
}

// The second request asks once more whether anything is computed.
void expect_lost(EngineFixture& fixture, const std::string& why) {
  const auto first = fixture.submit(plain_request(stories().config(), 20));
  fixture.run();
  const auto second = fixture.submit(plain_request(stories().config(), 20));
  fixture.run();
  for (const auto& heard : {first, second}) {
    ASSERT_TRUE(heard->ended());
    EXPECT_EQ(heard->answers[0].reason, FinishReason::kLost);
    EXPECT_NE(heard->answers[0].message.find(why), std::string::npos) << heard->answers[0].message;
  }
  EXPECT_TRUE(fixture.core().is_lost());
}

TEST(EngineOverRanks, ARankThatIsGoneEndsRequestsAndIsNamed) {
  const BackendOptions options = options_of(stories(), {});
  for (const std::uint32_t rank : {0u, 1u}) {
    for (const Fault fault : {Fault::kEnds, Fault::kFails, Fault::kIsSilent}) {
      // In the first layer, between layers, at the logits of the first launch, in later ones.
      for (const std::uint64_t at : {1u, 7u, 22u, 200u}) {
        const bool is_silent = fault == Fault::kIsSilent;
        if (is_silent && at != 7) continue;
        EngineFixture fixture(ThreadWorkers::backend(
            stories(), fastest(), options, 2, {rank, at, fault},
            is_silent ? std::chrono::milliseconds(300) : std::chrono::minutes(5)));
        expect_lost(fixture, "rank ");
      }
    }
  }
}

TEST(EngineOverRanks, ARankThatEndsWhileNothingRunsIsMissed) {
  EngineFixture fixture(ThreadWorkers::backend(stories(), fastest(), options_of(stories(), {}), 2,
                                               {.rank = 1, .at = 0, .fault = Fault::kEnds}));
  while (!fixture.core().is_lost()) {
    if (const auto error = fixture.backend().runner().find_loss()) fixture.core().lose(*error);
    std::this_thread::yield();
  }
  expect_lost(fixture, "rank 1 ended");
}

TEST(EngineOverRanks, HealthyRanksAreNotMissed) {
  EngineFixture fixture(ThreadWorkers::backend(stories(), fastest(), options_of(stories(), {}), 3));
  EXPECT_TRUE(fixture.backend().runner().may_vanish());
  EXPECT_FALSE(fixture.backend().runner().find_loss());
}

TEST(RanksBackend, RefusesWhatRanksCannotFollow) {
  const model::Config& config = stories().config();
  BackendOptions tiers;
  tiers.hash_blocks = true;
  EXPECT_NE(RanksBackend::check(config, tiers, 2).error().message.find("tiers"), std::string::npos);
  BackendOptions draft;
  draft.draft_model = DraftModelParts{};
  EXPECT_NE(RanksBackend::check(config, draft, 2).error().message.find("draft"), std::string::npos);
  EXPECT_FALSE(RanksBackend::check(config, {}, 65).ok());
  EXPECT_TRUE(RanksBackend::check(config, {}, 64).ok());
}

}  // namespace
}  // namespace pagoda::engine
