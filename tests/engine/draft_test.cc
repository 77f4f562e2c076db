// Drafts in the engine: what is collected of them, what the cache gets, what they are counted as.
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "engine/engine_fixture.h"
#include "speculate/recorded_drafter.h"

namespace pagoda::engine {
namespace {

using speculate::RecordedDrafter;

BackendOptions draft_backend() {
  BackendOptions options;
  options.threads = 1;
  options.kv_bytes = 8 << 20;
  options.scheduler.sequences_max = 4;
  options.scheduler.batched_tokens_max = 64;
  return options;
}

Request draft_request(std::size_t prompt_tokens, std::uint32_t output_tokens) {
  Request request;
  request.prompt = model::random_tokens(stories().config(), prompt_tokens, 5);
  request.end.max_tokens = output_tokens;
  request.end.ignore_eos = true;
  return request;
}

// Runs one request in an engine of its own.
struct Answered {
  TestSink::Given given;
  Counters counters;
  std::set<std::vector<TokenId>> published;  // the tokens of every node, with those before them
};

Answered answer(const Request& request, speculate::Drafter* drafter,
                const BackendOptions& options = draft_backend()) {
  EngineFixture fixture(stories().config(), stories().weights(), options,
                        *kernels::available_sets().back(), drafter);
  const auto heard = fixture.submit(request);
  fixture.run();
  Answered answered = {heard->answers[0], fixture.core().counters(), {}};
  const kv::PrefixTree& tree = fixture.backend().cache().tree();
  for (std::uint32_t i = 0; i < tree.node_numbers(); ++i) {
    if (!tree.is_live(kv::NodeId(i))) continue;
    std::vector<TokenId> tokens;
    for (kv::NodeId node(i); !tree.is_root(node); node = tree.parent(node)) {
      tokens.insert(tokens.begin(), tree.tokens(node).begin(), tree.tokens(node).end());
    }
    answered.published.insert(tokens);
  }
  return answered;
}

RecordedDrafter drafter_for(const Request& request, const std::vector<TokenId>& output,
                            double wrong, std::uint32_t tokens_max = 63) {
  RecordedDrafter drafter({.wrong = wrong, .tokens_max = tokens_max, .vocabulary = 512, .seed = 9});
  std::vector<TokenId> sequence = request.prompt;
  sequence.insert(sequence.end(), output.begin(), output.end());
  drafter.record(std::move(sequence));
  return drafter;
}

TEST(Drafts, RightOnesComeAtTheSpeedOfVerification) {
  const Request request = draft_request(20, 41);
  const Answered plain = answer(request, nullptr);
  RecordedDrafter drafter = drafter_for(request, plain.given.tokens, 0, 7);
  const Answered drafted = answer(request, &drafter);
  EXPECT_EQ(drafted.given.tokens, plain.given.tokens);
  EXPECT_EQ(plain.counters.steps, 41u);
  EXPECT_EQ(drafted.counters.steps, 1u + 5u) << "the prompt, and 40 tokens by eights";
  const DraftCounts& drafts = drafted.given.record.drafts;
  EXPECT_EQ(drafts.drafts, 5u);
  EXPECT_EQ(drafts.tokens, 35u);
  EXPECT_EQ(drafts.accepted, 35u);
  EXPECT_EQ(drafted.counters.drafts_accepted_at[6], 5u);
  EXPECT_EQ(drafted.counters.drafts_accepted_at[7], 0u);
  EXPECT_EQ(drafted.counters.output_tokens, plain.counters.output_tokens);
  EXPECT_EQ(drafted.counters.draft_steps_saved, plain.counters.steps - drafted.counters.steps);
  EXPECT_EQ(plain.counters.draft_steps_saved, 0u);
}

TEST(Drafts, WhatIsPublishedIsWhatIsPublishedWithout) {
  for (const double wrong : {0.0, 0.2, 0.6, 1.0}) {
    for (const std::uint32_t tokens : {2u, 17u, 50u}) {
      const Request request = draft_request(21, tokens);
      const Answered plain = answer(request, nullptr);
      RecordedDrafter drafter = drafter_for(request, plain.given.tokens, wrong);
      const Answered drafted = answer(request, &drafter);
      EXPECT_EQ(drafted.given.tokens, plain.given.tokens);
      EXPECT_EQ(drafted.given.reason, plain.given.reason);
      EXPECT_EQ(drafted.published, plain.published) << wrong << ", " << tokens;
    }
  }
}

// Random numbers, penalties, bias, log-probabilities and least lengths are those of a step a token.
TEST(Drafts, EveryKindOfSamplingGivesTheSameTokensAndScores) {
  SamplingParams plain;
  plain.logprobs = 3;
  plain.seed = 42;
  std::vector<SamplingParams> kinds(9, plain);
  for (std::size_t i = 1; i < kinds.size(); ++i)
    kinds[i].temperature = 0.4f + 0.1f * static_cast<float>(i);
  kinds[2].top_p = 0.7f;
  kinds[3].top_k = 5;
  kinds[4].min_p = 0.05f;
  kinds[5].repetition_penalty = 1.3f;
  kinds[6].frequency_penalty = 1.1f;
  kinds[7].presence_penalty = 1.5f;
  kinds[8].logit_bias = {{TokenId(7), 3.0f}, {TokenId(30), -5.0f}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Request request = draft_request(15, 48);
    request.sampling = kinds[i];
    request.end.min_tokens = 20;
    request.end.ignore_eos = i % 2 == 0;
    const Answered alone = answer(request, nullptr);
    for (const double wrong : {0.0, 0.15, 0.5}) {
      RecordedDrafter drafter = drafter_for(request, alone.given.tokens, wrong);
      const Answered drafted = answer(request, &drafter);
      EXPECT_EQ(drafted.given.tokens, alone.given.tokens) << "kind " << i << ", " << wrong;
      EXPECT_TRUE(same_scores(drafted.given.scores, alone.given.scores)) << "kind " << i;
      EXPECT_GT(drafted.counters.drafts.accepted, 0u);
    }
  }
}

TEST(Drafts, StopTokensAndLengthsInsideADraftEndTheSequence) {
  Request request = draft_request(12, 40);
  const std::vector<TokenId> all = answer(request, nullptr).given.tokens;
  RecordedDrafter drafter = drafter_for(request, all, 0);
  for (const std::size_t stop : {std::size_t{1}, std::size_t{5}, std::size_t{16}, all.size() - 1}) {
    Request stopped = request;
    stopped.end.stop_token_ids = {all[stop]};
    const Answered plain = answer(stopped, nullptr);
    const Answered drafted = answer(stopped, &drafter);
    EXPECT_EQ(drafted.given.tokens, plain.given.tokens);
    EXPECT_EQ(drafted.given.reason, plain.given.reason);
    EXPECT_EQ(drafted.published, plain.published);
    stopped.end.min_tokens = static_cast<std::uint32_t>(stop) + 1;
    EXPECT_EQ(answer(stopped, &drafter).given.tokens, answer(stopped, nullptr).given.tokens);
  }
}

TEST(Drafts, TheTokenBudgetOfAStepCountsTheirRows) {
  BackendOptions options = draft_backend();
  options.scheduler.batched_tokens_max = 8;
  const Request request = draft_request(20, 40);
  const std::vector<TokenId> output = answer(request, nullptr).given.tokens;
  RecordedDrafter drafter = drafter_for(request, output, 0);
  EngineFixture fixture(stories().config(), stories().weights(), options,
                        *kernels::available_sets().back(), &drafter);
  const auto first = fixture.submit(request);
  const auto second = fixture.submit(request);
  std::uint64_t computed = 0;
  while (fixture.step()) {
    const std::uint64_t now = fixture.core().counters().tokens_computed;
    EXPECT_LE(now - computed, 8u);
    computed = now;
  }
  EXPECT_EQ(first->answers[0].tokens, output);
  EXPECT_EQ(second->answers[0].tokens, output);
  EXPECT_GT(fixture.core().counters().drafts.accepted, 0u);
}

TEST(Drafts, ARequestMayHaveNoneOrFew) {
  Request request = draft_request(20, 30);
  const std::vector<TokenId> output = answer(request, nullptr).given.tokens;
  RecordedDrafter drafter = drafter_for(request, output, 0);
  request.draft_tokens_max = 0;
  EXPECT_EQ(answer(request, &drafter).counters.drafts.drafts, 0u);
  request.draft_tokens_max = 2;
  const Answered few = answer(request, &drafter);
  EXPECT_GT(few.counters.drafts.accepted, 0u);
  EXPECT_EQ(few.counters.drafts_accepted_at[2], 0u);
  EXPECT_EQ(few.given.tokens, output);
}

// What the tree holds is drafted when the same is asked again, and in its own scope alone.
TEST(Drafts, ARepeatedQuestionIsDraftedFromTheTreeOfItsScope) {
  BackendOptions options = draft_backend();
  options.speculation.methods = speculate::MethodSet(speculate::DraftMethod::kTree);
  EngineFixture fixture(stories(), options, *kernels::available_sets().back());
  Request request = draft_request(30, 40);
  const auto ask = [&](const std::string& salt) {
    request.cache_salt = salt;
    const auto heard = fixture.submit(request);
    fixture.run();
    return heard->answers[0];
  };
  const TestSink::Given first = ask("mine");
  EXPECT_EQ(first.record.drafts.tokens, 0u);
  EXPECT_EQ(ask("other").record.drafts.tokens, 0u) << "another's answer is no draft";
  std::uint64_t accepted = 0;
  for (int i = 0; i < 5; ++i) {  // until it is known what rows cost
    const TestSink::Given again = ask("mine");
    EXPECT_EQ(again.tokens, first.tokens);
    EXPECT_EQ(again.record.drafts.accepted, again.record.drafts.tokens);
    accepted += again.record.drafts.accepted;
  }
  EXPECT_GT(accepted, 0u);
}

// ScriptedRunner samples token 1, and says from which row of a draft on tokens are not finite and
// behind which row its grammar ends.
class ScriptedRunner final : public Runner {
 public:
  explicit ScriptedRunner(std::uint32_t launches_ahead = 0) : ahead_(launches_ahead) {}

  std::uint32_t launches_ahead() const override { return ahead_; }
  std::uint32_t drafts_max() const override { return 8; }
  std::uint32_t launch_drafts_max() const override { return launch_drafts; }
  void launch(const Launch& launch) override {
    for (const LaunchRows& rows : launch.rows) {
      const bool follows = rows.tokens.size() + rows.drafts.size() < rows.rows;
      EXPECT_TRUE(!follows || launched_ > collected_) << "a token that nothing samples";
      EXPECT_TRUE(!follows || rows.drafts.empty()) << "drafts behind a token that nobody knows";
    }
    auto& [samples, nonfinite] = results_[launched_++ % 2];
    running_max = std::max(running_max, launched_ - collected_);
    samples.clear();
    nonfinite.clear();
    std::size_t drafts = 0;
    for (const LaunchRows& rows : launch.rows) {
      nonfinite.push_back(rows.drafts.empty() ? 0 : nonfinite_row);
      drafts += rows.drafts.size();
    }
    EXPECT_LE(drafts, launch_drafts);
    for (const LaunchSample& sample : launch.samples) {
      bool goes_on = true;
      for (std::size_t i = 0; i <= sample.drafts.size(); ++i) {
        if (goes_on) {
          const bool ends = !sample.drafts.empty() && grammar_ends_at == i;
          samples.emplace_back(
              SampledToken{.token = TokenId(1), .score = {}, .ends_grammar = ends});
        } else {
          samples.emplace_back(Error{ErrorCode::kCorrupt, "logit 7 is not finite"});
        }
        goes_on = goes_on && i < sample.drafts.size() && sample.drafts[i] == TokenId(1);
      }
    }
  }
  Collected collect() override {
    auto& [samples, nonfinite] = results_[collected_++ % 2];
    return {samples, {}, nullptr, nonfinite};
  }

  std::uint64_t launched() const { return launched_; }
  std::uint64_t running_max = 0;
  std::uint32_t launch_drafts = UINT32_MAX;
  std::uint8_t nonfinite_row = 0;
  std::optional<std::size_t> grammar_ends_at = {};  // row of a draft

 private:
  struct Results {
    std::vector<Result<SampledToken>> samples;
    std::vector<std::uint8_t> nonfinite;
  };
  std::uint32_t ahead_;
  Results results_[2];
  std::uint64_t launched_ = 0;
  std::uint64_t collected_ = 0;
};

// FixedDrafter drafts 1 1 2 1 1: the third token is wrong. It has drafts for prompts that begin
// with token 5.
class FixedDrafter final : public speculate::Drafter {
 public:
  speculate::Proposal propose(const speculate::DraftQuery& query, speculate::SequenceDrafting&,
                              std::span<TokenId> room) override {
    if (query.tokens.front() != TokenId(5)) return {};
    for (std::uint32_t i = 0; i < 5; ++i) room[i] = TokenId(i == 2 ? 2 : 1);
    return {.tokens = 5};
  }
};

// Runs requests for 20 tokens whose drafts are those of FixedDrafter, and others beside them.
std::vector<TestSink::Given> answer_scripted(ScriptedRunner& runner, std::size_t with_drafts,
                                             std::size_t others) {
  CoreOptions options;
  options.limits = {.vocabulary = 1000, .context_tokens = 200, .sequences_max = 4};
  options.space = "scripted";
  FixedDrafter drafter;
  options.drafter = &drafter;
  kv::Cache cache({.blocks = 100});
  sched::TenantTable tenants;
  const SteadyClock clock;
  Core core(options, cache, tenants, runner, clock);
  std::vector<std::shared_ptr<TestSink>> heard;
  for (std::uint32_t i = 0; i < with_drafts + others; ++i) {
    Request request;
    request.prompt = {TokenId(i < with_drafts ? 5 : 7), TokenId(8 + i)};
    request.end.max_tokens = 20;
    heard.push_back(std::make_shared<TestSink>(1));
    core.submit(RequestId(i), request, heard.back());
  }
  while (core.step()) core.check();
  std::vector<TestSink::Given> given;
  for (const auto& sink : heard) given.push_back(sink->answers[0]);
  return given;
}
TestSink::Given answer_scripted(ScriptedRunner& runner) {
  return answer_scripted(runner, 1, 0).front();
}

// Drafts follow tokens that are known: a device that computes one launch ahead waits for them, and
// is ahead again without drafts.
TEST(Drafts, ARunnerAheadWaitsForTheTokensThatDraftsFollow) {
  ScriptedRunner runner(1);
  const TestSink::Given given = answer_scripted(runner);
  EXPECT_EQ(given.tokens, std::vector<TokenId>(20, TokenId(1)));
  EXPECT_EQ(given.record.drafts.accepted, given.record.drafts.drafts * 2);
  // The prompt and one token behind it, launched ahead; then three tokens a launch.
  EXPECT_EQ(runner.launched(), 2u + 6u);
  EXPECT_EQ(given.record.drafts.drafts, 6u);
  EXPECT_EQ(runner.running_max, 2u);
}

TEST(Drafts, ARunnerAheadWaitsForNothingWithoutDrafts) {
  ScriptedRunner runner(1);
  const auto given = answer_scripted(runner, 0, 3);
  for (const TestSink::Given& each : given) EXPECT_EQ(each.tokens.size(), 20u);
  EXPECT_EQ(runner.launched(), 20u);
  EXPECT_EQ(runner.running_max, 2u);
}

// While a draft model lacks a prompt the device stays a launch ahead; then launches wait for
// tokens.
TEST(Drafts, ADraftModelCatchesUpBesideARunnerAhead) {
  ScriptedRunner runner(1);
  ScriptedRunner draft_runner;  // samples token 1 as well: its drafts are right
  kv::Cache draft_cache({.blocks = 100});
  DraftModel model({.space = "draft", .vocabulary = 1000, .context_tokens = 400, .rows_max = 64},
                   draft_cache, draft_runner);
  CoreOptions options;
  options.limits = {.vocabulary = 1000, .context_tokens = 400, .sequences_max = 4};
  options.space = "scripted";
  options.draft_model = &model;
  options.speculation.methods = speculate::MethodSet(speculate::DraftMethod::kDraftModel);
  options.speculation.weighs_costs = false;
  options.speculation.tokens_max = 4;
  kv::Cache cache({.blocks = 100});
  sched::TenantTable tenants;
  const SteadyClock clock;
  Core core(options, cache, tenants, runner, clock);
  Request request;
  request.prompt.assign(150, TokenId(3));
  request.end.max_tokens = 60;
  const auto heard = std::make_shared<TestSink>(1);
  core.submit(RequestId(0), request, heard);
  while (core.step()) core.check();
  const TestSink::Given& given = heard->answers[0];
  EXPECT_EQ(given.tokens, std::vector<TokenId>(60, TokenId(1)));
  EXPECT_GT(given.record.drafts.accepted, 20u);
  EXPECT_EQ(given.record.drafts.accepted, given.record.drafts.tokens);
  EXPECT_EQ(runner.running_max, 2u);
  EXPECT_LT(runner.launched(), 40u);
}

TEST(Drafts, ALaunchHasNoMoreThanTheRunnerTakes) {
  for (const std::uint32_t most : {0u, 1u, 7u, 12u}) {
    ScriptedRunner runner(1);
    runner.launch_drafts = most;
    const auto given = answer_scripted(runner, 6, 0);
    for (const TestSink::Given& each : given) EXPECT_EQ(each.tokens.size(), 20u);
    EXPECT_EQ(given[0].record.drafts.drafts > 0, most > 0);
  }
}

TEST(Drafts, ARowBehindTheFirstOtherTokenHasNoEffectEvenIfItIsNotFinite) {
  for (std::uint8_t row = 0; row <= 6; ++row) {  // 1 + the first row that is not finite
    ScriptedRunner runner;
    runner.nonfinite_row = row;
    const TestSink::Given given = answer_scripted(runner);
    // Rows 0, 1 and 2 of a draft count: the token behind row 2 is not the draft's.
    const bool fails = row >= 1 && row <= 3;
    EXPECT_EQ(given.reason, fails ? FinishReason::kError : FinishReason::kLength) << int{row};
    EXPECT_EQ(given.tokens.size(), fails ? std::size_t{row} : 20u) << int{row};
    // The prompt's token is no draft's.
    if (!fails) continue;
    EXPECT_EQ(given.record.drafts.accepted, given.tokens.size() - 1) << int{row};
  }
}

TEST(Drafts, BehindTheEndOfAGrammarNoneIsAccepted) {
  for (const std::size_t row : {0u, 1u}) {
    ScriptedRunner runner;
    runner.grammar_ends_at = row;
    const TestSink::Given given = answer_scripted(runner);
    EXPECT_EQ(given.reason, FinishReason::kStop);
    ASSERT_EQ(given.tokens.size(), 2 + row) << "the prompt's token, and those up to the end";
    EXPECT_EQ(given.record.drafts.tokens, 5u);
    EXPECT_EQ(given.record.drafts.accepted, 1 + row);
  }
}

}  // namespace
}  // namespace pagoda::engine
