#include "engine/end_rule.h"

#include <gtest/gtest.h>

#include <string>

namespace pagoda::engine {
namespace {

const std::vector<TokenId> kModelEnds = {TokenId(2), TokenId(7)};

TEST(EndRule, SaysWhichKindOfTokenEndedTheAnswer) {
  const EndRule rule({.max_tokens = 5, .stop_token_ids = {TokenId(4)}}, kModelEnds);
  EXPECT_EQ(rule.after(TokenId(7), 1), EndReason::kEndToken);
  EXPECT_EQ(rule.after(TokenId(4), 1), EndReason::kStopToken);
  EXPECT_EQ(rule.after(TokenId(3), 1), std::nullopt);
  EXPECT_EQ(rule.after(TokenId(3), 4), std::nullopt);
  EXPECT_EQ(rule.after(TokenId(3), 5), EndReason::kLength);
  EXPECT_EQ(rule.after(TokenId(2), 5), EndReason::kEndToken) << "a token's reason comes first";
}

TEST(EndRule, IgnoredEndTokensEndNothingButAStopTokenOfTheSameIdDoes) {
  const EndRule rule({.stop_token_ids = {TokenId(7)}, .ignore_eos = true}, kModelEnds);
  EXPECT_EQ(rule.after(TokenId(2), 1), std::nullopt);
  EXPECT_EQ(rule.after(TokenId(7), 1), EndReason::kStopToken);
}

TEST(EndRule, UntilMinTokensNothingEndsAndEndingTokensAreForbidden) {
  for (const bool ignore_eos : {false, true}) {
    const EndRule rule({.min_tokens = 3,
                        .stop_token_ids = {TokenId(9), TokenId(2), TokenId(0)},
                        .ignore_eos = ignore_eos},
                       kModelEnds);
    EXPECT_EQ(rule.after(TokenId(9), 2), std::nullopt);
    EXPECT_EQ(rule.after(TokenId(9), 3), EndReason::kStopToken);
    const auto forbidden = rule.forbidden_after(2);
    EXPECT_EQ(std::vector(forbidden.begin(), forbidden.end()),
              (std::vector{TokenId(0), TokenId(2), TokenId(7), TokenId(9)}));
    EXPECT_TRUE(rule.forbidden_after(3).empty());
  }
}

TEST(EndRule, TheDefaultNeverEnds) {
  EXPECT_EQ(EndRule().after(TokenId(0), 1u << 30), std::nullopt);
  EXPECT_TRUE(EndRule().forbidden_after(0).empty());
}

TEST(EndOptions, ThatMakeNoSenseAreNamedWithTheirNumbers) {
  const std::vector<std::pair<EndOptions, std::string>> bad = {
      {{.max_tokens = 0}, "max_tokens is 0, expected at least 1"},
      {{.min_tokens = 6, .max_tokens = 5},
       "min_tokens is 6, expected at most max_tokens, which is 5"},
      {{.stop_token_ids = {TokenId(3), TokenId(100)}},
       "stop_token_ids names token 100, expected below the vocabulary of 100"},
  };
  for (const auto& [options, message] : bad) {
    const Status status = check_end(options, 100);
    ASSERT_FALSE(status.ok()) << message;
    EXPECT_EQ(status.error().message, message);
  }
  EXPECT_TRUE(check_end({.min_tokens = 5, .max_tokens = 5}, 100).ok());
  EXPECT_TRUE(check_end({.min_tokens = 5}, 100).ok());
}

}  // namespace
}  // namespace pagoda::engine
