// Sampling under a grammar: which tokens are left, what is reported, and when an answer ends.
#include "engine/token_constraint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "engine/backends/sample_row.h"
#include "engine/sampler.h"
#include "kernels/select.h"
#include "structured/grammar.h"

namespace pagoda::engine {
namespace {

// Token 0 ends an answer, token i is the i-th letter.
constexpr std::uint32_t kEnd = 0;
constexpr std::uint32_t kLetters = 6;

std::shared_ptr<const structured::MaskVocabulary> letter_vocabulary() {
  std::vector<std::string> bytes = {""};
  for (std::uint32_t i = 1; i < kLetters; ++i) {
    bytes.emplace_back(1, static_cast<char>('a' + i - 1));
  }
  const std::vector<TokenId> ends = {TokenId(kEnd)};
  return structured::MaskVocabulary::build(bytes, ends, kLetters);
}

structured::Matcher matcher_of(const std::string& pattern) {
  return {structured::grammar_from_regex(pattern).value(), letter_vocabulary()};
}

SamplingState state_of(const SamplingParams& options, const std::string& pattern,
                       const StopParams& end = {}) {
  const std::vector<TokenId> ends = {TokenId(kEnd)};
  SamplingState state(options, {}, StopCriteria(end, ends));
  state.constrain(matcher_of(pattern));
  return state;
}

SamplerScratch small_scratch() { return {*kernels::available_sets().back(), kLetters}; }

// Samples as a runner does; the token is recorded.
Result<SampledToken> next_token(SamplingState& state, const std::vector<float>& logits,
                                std::uint64_t position = 0) {
  SamplerScratch scratch = small_scratch();
  return sample_row(logits, {.handle = nullptr, .row = 0, .position = position, .sampling = &state},
                    scratch);
}

const std::vector<float> kSixLogits = {9, 5, 4, 3, 2, 1};

TEST(TokenConstraint, OnlyTokensOfTheGrammarAreSampled) {
  SamplingState state = state_of({}, "[bd]c?e");
  EXPECT_EQ(next_token(state, kSixLogits).value().token, TokenId(2)) << "b is above d";
  EXPECT_EQ(next_token(state, kSixLogits).value().token, TokenId(3)) << "c is above e";
  EXPECT_EQ(next_token(state, kSixLogits).value().token, TokenId(5)) << "e is all that is left";
  EXPECT_EQ(next_token(state, kSixLogits).value().token, TokenId(kEnd));
}

TEST(TokenConstraint, DrawsAreByTheWeightsOfWhatIsLeft) {
  std::map<std::uint32_t, int> counts;
  const std::vector<float> logits = {0, std::log(0.5f), std::log(0.3f), std::log(0.1f), 0, 0};
  for (const SamplingParams& options :
       {SamplingParams{.temperature = 1.0f, .seed = 3},
        SamplingParams{.temperature = 1.0f, .top_k = 5, .seed = 3},
        SamplingParams{.temperature = 1.0f, .min_p = 0.01f, .seed = 3}}) {
    counts.clear();
    for (std::uint64_t position = 0; position < 4000; ++position) {
      SamplingState state = state_of(options, "[ac]b");
      ++counts[next_token(state, logits, position).value().token.value()];
    }
    EXPECT_EQ(counts.size(), 2U);
    EXPECT_NEAR(counts[1], 4000 * 5 / 6, 120);
  }
}

TEST(TokenConstraint, LogprobsAreThoseBeforeTheMask) {
  SamplingState free_state({.logprobs = 2}, {});
  SamplingState state = state_of({.logprobs = 2}, "e");
  const SampledToken free_token = next_token(free_state, kSixLogits).value();
  const SampledToken token = next_token(state, kSixLogits).value();
  EXPECT_EQ(token.token, TokenId(5));
  ASSERT_TRUE(token.score && free_token.score);
  EXPECT_EQ(token.score->top[0].token, free_token.score->top[0].token);
  EXPECT_EQ(token.score->top[0].logprob, free_token.score->top[0].logprob);
  double sum = 0;
  for (const float logit : kSixLogits) sum += std::exp(double{logit});
  EXPECT_NEAR(token.score->chosen.logprob, 1 - std::log(sum), 1e-5);
  EXPECT_EQ(token.score->chosen.rank, 6U);
}

TEST(TokenConstraint, MinTokensGivesWayWhereNothingButTheEndIsLeft) {
  SamplingState state = state_of({}, "ab*", {.min_tokens = 3});
  EXPECT_EQ(next_token(state, kSixLogits).value().token, TokenId(1));
  EXPECT_EQ(next_token(state, kSixLogits).value().token, TokenId(2))
      << "the end is not yet allowed";
  SamplingState short_state = state_of({}, "a", {.min_tokens = 3});
  EXPECT_EQ(next_token(short_state, kSixLogits).value().token, TokenId(1));
  const SampledToken end = next_token(short_state, kSixLogits).value();
  EXPECT_EQ(end.token, TokenId(kEnd));
  EXPECT_TRUE(end.ends_grammar) << "and the answer ends there";
}

TEST(TokenConstraint, ABiasAgainstAllThatIsLeftIsAnError) {
  SamplingState state =
      state_of({.logit_bias = {{TokenId(1), -std::numeric_limits<float>::infinity()}}}, "a");
  const auto outcome = next_token(state, kSixLogits);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message.find("and the grammar forbid every token"), std::string::npos);
}

TEST(TokenConstraint, ForksGoTheirOwnWays) {
  const SamplingState first = state_of({}, "(ab|ba)");
  SamplingState one = first.fork(0);
  SamplingState other = first.fork(1);
  one.accept(TokenId(1));
  other.accept(TokenId(2));
  EXPECT_EQ(next_token(one, kSixLogits).value().token, TokenId(2));
  EXPECT_EQ(next_token(other, kSixLogits).value().token, TokenId(1));
}

TEST(TokenConstraint, PreparingEarlyChangesNothing) {
  SamplingState early = state_of({}, "[bd]c?e");
  SamplingState late = state_of({}, "[bd]c?e");
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(early.prepare().ok());
    EXPECT_EQ(next_token(early, kSixLogits).value().token,
              next_token(late, kSixLogits).value().token);
  }
}

// Reasoning is a part of the grammar: the answer is free until it has "aab".
TEST(TokenConstraint, TellsTheWorkOfItsLastMask) {
  SamplingState state = state_of({}, "[ab]*");
  ASSERT_TRUE(state.prepare().ok());
  EXPECT_GT(state.constraint()->mask_work(), 0U);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(next_token(state, kSixLogits).ok());
  EXPECT_EQ(state.constraint()->mask_work(), 0U) << "a mask that was known";
}

TEST(TokenConstraint, AGrammarMayBeginBehindFreeText) {
  structured::GrammarBuilder builder;
  const auto grammar = builder.finish(builder.text_until("aab", builder.literal("e"))).value();
  SamplingState state({}, {});
  state.constrain({grammar, letter_vocabulary()});
  const auto steered = [&](std::uint32_t token) {
    std::vector<float> logits = kSixLogits;
    logits[token] = 20;
    return next_token(state, logits).value().token.value();
  };
  EXPECT_EQ(steered(kEnd), 1U) << "it does not end before its grammar does";
  for (const std::uint32_t token : {4, 1, 2, 1, 1, 1, 2}) EXPECT_EQ(steered(token), token);
  EXPECT_EQ(steered(4), 5U) << "now it is constrained";
  EXPECT_EQ(steered(4), kEnd);
}

TEST(TokenConstraint, AWideRowIsMaskedToItsLastToken) {
  constexpr std::uint32_t kWide = 200;
  std::vector<std::string> bytes(kWide, "x");
  bytes[0] = "";
  bytes[199] = "y";
  const std::vector<TokenId> ends = {TokenId(kEnd)};
  TokenConstraint constraint({structured::grammar_from_regex("y").value(),
                              structured::MaskVocabulary::build(bytes, ends, kWide)});
  ASSERT_TRUE(constraint.prepare().ok());
  std::vector<float> row(kWide, 1.0f);
  constraint.drop_others(row, -7.0f);
  for (std::uint32_t i = 0; i < kWide; ++i) EXPECT_EQ(row[i], i == 199 ? 1.0f : -7.0f) << i;
}

TEST(TokenConstraint, ListsTheTokensThatItLeavesNoChoiceAbout) {
  struct Case {
    const char* pattern;
    std::vector<std::uint32_t> taken;   // before it is asked
    std::vector<std::uint32_t> forced;  // an end token is the last
  };
  for (const Case& one : {Case{"abcd", {}, {1, 2, 3, 4, kEnd}}, Case{"ab[cd]e", {}, {1, 2}},
                          Case{"ab[cd]e", {1, 2}, {}}, Case{"ab[cd]e", {1, 2, 3}, {5, kEnd}},
                          Case{"a*b", {}, {}}, Case{"a|ab", {1}, {}}}) {
    SamplingState state = state_of({}, one.pattern);
    for (const std::uint32_t token : one.taken) state.accept(TokenId(token));
    std::vector<TokenId> room(8);
    for (const std::size_t most : {std::size_t{8}, std::size_t{1}, std::size_t{0}}) {
      const std::size_t count = state.forced_tokens()->list_forced(std::span(room).first(most));
      ASSERT_EQ(count, std::min(most, one.forced.size())) << one.pattern;
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(room[i], TokenId(one.forced[i]));
    }
    EXPECT_TRUE(next_token(state, kSixLogits).ok()) << "asking changed nothing";
  }
}

}  // namespace
}  // namespace pagoda::engine
