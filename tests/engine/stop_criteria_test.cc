#include "engine/stop_criteria.h"

#include <gtest/gtest.h>

#include <string>

namespace pagoda::engine {
namespace {

const std::vector<TokenId> kModelEnds = {TokenId(2), TokenId(7)};

TEST(StopCriteria, SaysWhichKindOfTokenEndedTheSequence) {
  const StopCriteria rule({.max_tokens = 5, .stop_token_ids = {TokenId(4)}}, kModelEnds);
  EXPECT_EQ(rule.after(TokenId(7), 1), StopReason::kEosToken);
  EXPECT_EQ(rule.after(TokenId(4), 1), StopReason::kStopToken);
  EXPECT_EQ(rule.after(TokenId(3), 1), std::nullopt);
  EXPECT_EQ(rule.after(TokenId(3), 4), std::nullopt);
  EXPECT_EQ(rule.after(TokenId(3), 5), StopReason::kLength);
  EXPECT_EQ(rule.after(TokenId(2), 5), StopReason::kEosToken) << "a token's reason comes first";
}

TEST(StopCriteria, IgnoredEndTokensEndNothingButAStopTokenOfTheSameIdDoes) {
  const StopCriteria rule({.stop_token_ids = {TokenId(7)}, .ignore_eos = true}, kModelEnds);
  EXPECT_EQ(rule.after(TokenId(2), 1), std::nullopt);
  EXPECT_EQ(rule.after(TokenId(7), 1), StopReason::kStopToken);
}

TEST(StopCriteria, UntilMinTokensNothingEndsAndEndingTokensAreForbidden) {
  for (const bool ignore_eos : {false, true}) {
    const StopCriteria rule({.min_tokens = 3,
                             .stop_token_ids = {TokenId(9), TokenId(2), TokenId(0)},
                             .ignore_eos = ignore_eos},
                            kModelEnds);
    EXPECT_EQ(rule.after(TokenId(9), 2), std::nullopt);
    EXPECT_EQ(rule.after(TokenId(9), 3), StopReason::kStopToken);
    const auto forbidden = rule.forbidden_after(2);
    EXPECT_EQ(std::vector(forbidden.begin(), forbidden.end()),
              (std::vector{TokenId(0), TokenId(2), TokenId(7), TokenId(9)}));
    EXPECT_TRUE(rule.forbidden_after(3).empty());
  }
}

TEST(StopCriteria, TheDefaultNeverEnds) {
  EXPECT_EQ(StopCriteria().after(TokenId(0), 1u << 30), std::nullopt);
  EXPECT_TRUE(StopCriteria().forbidden_after(0).empty());
}

TEST(StopParams, ThatMakeNoSenseAreNamedWithTheirNumbers) {
  const std::vector<std::pair<StopParams, std::string>> bad = {
      {{.max_tokens = 0}, "max_tokens is 0, expected at least 1"},
      {{.min_tokens = 6, .max_tokens = 5},
       "min_tokens is 6, expected at most max_tokens, which is 5"},
      {{.stop_token_ids = {TokenId(3), TokenId(100)}},
       "stop_token_ids names token 100, expected below the vocabulary of 100"},
  };
  for (const auto& [options, message] : bad) {
    const Status status = check_stop(options, 100);
    ASSERT_FALSE(status.ok()) << message;
    EXPECT_EQ(status.error().message, message);
  }
  EXPECT_TRUE(check_stop({.min_tokens = 5, .max_tokens = 5}, 100).ok());
  EXPECT_TRUE(check_stop({.min_tokens = 5}, 100).ok());
}

}  // namespace
}  // namespace pagoda::engine
