// Masks that another thread computes are those that a matcher alone gives, whoever comes first.
#include "engine/backends/mask_thread.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "engine/list_constraint.h"

namespace pagoda::engine {
namespace {

constexpr std::size_t kRows = 16;

model::Config config_of_words() {
  model::Config config;
  config.vocabulary = 384;
  return config;
}

std::vector<structured::MaskWord> mask_of(structured::Matcher& matcher) {
  std::vector<structured::MaskWord> mask(matcher.vocabulary().words());
  EXPECT_TRUE(matcher.fill_mask(mask).ok());
  return mask;
}

// A token of the mask by chance.
TokenId chosen_of(std::span<const structured::MaskWord> mask, std::mt19937& random) {
  std::vector<TokenId> allowed;
  for (std::uint32_t i = 0; i < mask.size() * 64; ++i) {
    if (structured::has_mask_bit(mask, i)) allowed.push_back(TokenId(i));
  }
  return allowed.at(random() % allowed.size());
}

class MaskThreadTest : public testing::TestWithParam<bool> {};

TEST_P(MaskThreadTest, MasksAreThoseOfAMatcherAlone) {
  const auto constraint = list_constraint(config_of_words());
  std::mt19937 random(5);
  MaskThread masks(2 * kRows, GetParam());
  for (int repeat = 0; repeat < 4; ++repeat) {
    std::vector<SamplingState> states;
    std::vector<structured::Matcher> alone(kRows, *constraint);
    for (std::size_t i = 0; i < 2 * kRows; ++i) {
      states.emplace_back(SamplingParams{}, std::span<const TokenId>{});
      if (i % 2 == 0) states.back().constrain(*constraint);
    }
    for (int token = 0; token < 60; ++token) {
      std::vector<LaunchSample> samples;
      // Some rows leave the batch, and come back.
      for (SamplingState& state : states) {
        const bool is_open = !state.constraint() || !state.constraint()->has_ended();
        if (is_open && random() % 5 != 0) samples.push_back({.sampling = &state});
      }
      masks.begin(samples);
      if (token % 3 == 0) std::this_thread::yield();
      masks.wait();
      for (const LaunchSample& sample : samples) {
        if (!sample.sampling->constraint()) continue;
        const auto index = static_cast<std::size_t>(sample.sampling - states.data()) / 2;
        const auto mask = sample.sampling->constraint()->mask();
        const std::vector<structured::MaskWord> expected = mask_of(alone[index]);
        ASSERT_TRUE(std::equal(mask.begin(), mask.end(), expected.begin(), expected.end()));
        const TokenId next = chosen_of(mask, random);
        sample.sampling->accept(next);
        ASSERT_TRUE(alone[index].accept(next).ok());
      }
    }
  }
}

TEST_P(MaskThreadTest, AnErrorIsKeptForWhoeverSamples) {
  structured::GrammarBuilder builder;
  const auto grammar = builder.finish(builder.literal("\xC3\xA9")).value();
  // No token of the vocabulary is the text.
  const std::vector<TokenId> ends = {TokenId(0)};
  const auto vocabulary = structured::MaskVocabulary::build({"", "a", "b"}, ends, 3);
  SamplingState state(SamplingParams{}, {});
  state.constrain(structured::Matcher(grammar, vocabulary));
  const std::vector<LaunchSample> samples = {{.sampling = &state}};
  MaskThread masks(1, GetParam());
  masks.begin(samples);
  masks.wait();
  masks.wait();
  EXPECT_FALSE(state.prepare().ok());
  masks.begin({});
  masks.wait();
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAThread, MaskThreadTest, testing::Bool());

}  // namespace
}  // namespace pagoda::engine
