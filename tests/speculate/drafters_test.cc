#include "speculate/drafters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/random.h"
#include "speculate/recorded_drafter.h"
#include "speculate/speculator.h"

namespace pagoda::speculate {
namespace {

using Tokens = std::vector<TokenId>;

Tokens tokens_of(std::initializer_list<std::uint32_t> values) {
  Tokens tokens;
  for (const std::uint32_t value : values) tokens.emplace_back(value);
  return tokens;
}

Tokens drawn_text(std::uint64_t seed, std::size_t count, std::uint64_t vocabulary) {
  Tokens text;
  for (std::size_t i = 0; i < count; ++i) {
    text.push_back(TokenId(static_cast<std::uint32_t>(random_bits(seed, 2, i) % vocabulary)));
  }
  return text;
}

struct Drafted {
  Tokens tokens;
  std::uint32_t match = 0;
};

Drafted propose(Drafter& drafter, SequenceDrafting& drafting, const Tokens& tokens,
                std::uint64_t prompt_tokens = 0, std::size_t room = kDraftTokensMax) {
  std::array<TokenId, kDraftTokensMax> written;
  const Proposal proposal = drafter.propose({.tokens = tokens, .prompt_tokens = prompt_tokens},
                                            drafting, std::span(written).first(room));
  return {{written.begin(), written.begin() + proposal.tokens}, proposal.match};
}

SpeculationOptions options_with(DraftMethod method) {
  SpeculationOptions options;
  options.methods = MethodSet(method);
  return options;
}

// vLLM's rule, by trying every n from the largest and every position from the first.
Tokens vllm_ngram(const Tokens& tokens, std::size_t least, std::size_t most, std::size_t room) {
  for (std::size_t n = most; n >= least; --n) {
    if (tokens.size() <= n) continue;
    const auto suffix = tokens.end() - static_cast<std::ptrdiff_t>(n);
    for (auto at = tokens.begin(); at < suffix; ++at) {
      if (!std::equal(suffix, tokens.end(), at)) continue;
      const auto next = at + static_cast<std::ptrdiff_t>(n);
      const auto count =
          std::min<std::ptrdiff_t>(tokens.end() - next, static_cast<std::ptrdiff_t>(room));
      return {next, next + count};
    }
  }
  return {};
}

TEST(NgramDrafter, DraftsByVllmsRule) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SpeculationOptions options = options_with(DraftMethod::kNgram);
    options.lookup_min = static_cast<std::uint32_t>(1 + seed % 5);
    options.lookup_max = options.lookup_min + static_cast<std::uint32_t>(seed % 3);
    Speculator speculator(options);
    const auto drafting = speculator.open({.tokens_expected = 100});
    speculator.start(*drafting);
    NgramDrafter drafter(options);
    const Tokens text = drawn_text(seed, 10 + seed % 90, 2 + seed % 4);
    EXPECT_EQ(propose(drafter, *drafting, text, 0, 5).tokens,
              vllm_ngram(text, options.lookup_min, options.lookup_max, 5))
        << "seed " << seed;
  }
}

TEST(SuffixDrafter, ALongerMatchGivesALongerDraft) {
  const SpeculationOptions options = options_with(DraftMethod::kSuffix);
  SuffixDrafter drafter(options);
  Speculator speculator(options);
  const Tokens line = tokens_of({11, 12, 13, 14, 15, 16, 17, 18, 19, 20});
  for (std::size_t match = 1; match <= 9; ++match) {
    Tokens text = line;
    text.push_back(TokenId(99));
    text.insert(text.end(), line.begin(), line.begin() + static_cast<std::ptrdiff_t>(match));
    const auto drafting = speculator.open({.tokens_expected = 100});
    speculator.start(*drafting);
    const Drafted drafted = propose(drafter, *drafting, text, 0, 4);
    const std::size_t expected = match < 3 ? 0 : std::min<std::size_t>(match, 4);
    ASSERT_EQ(drafted.tokens.size(), expected) << match;
    EXPECT_EQ(drafted.match, expected == 0 ? 0 : match);
    for (std::size_t i = 0; i < expected; ++i) EXPECT_EQ(drafted.tokens[i], text[match + i]);
  }
}

TEST(SuffixDrafter, EndsWhereWhatFollowedIsTooUncertain) {
  SpeculationOptions options = options_with(DraftMethod::kSuffix);
  options.suffix_probability_min = 0.4;
  SuffixDrafter drafter(options);
  Speculator speculator(options);
  const auto drafting = speculator.open({.tokens_expected = 100});
  speculator.start(*drafting);
  // After 1 2 3 came 4 5, 4 6 and 4 7: the token behind 4 has a third.
  const Tokens text = tokens_of({1, 2, 3, 4, 5, 8, 1, 2, 3, 4, 6, 8, 8, 1, 2, 3, 4, 7, 9, 1, 2, 3});
  EXPECT_EQ(propose(drafter, *drafting, text).tokens, tokens_of({4}));
}

TEST(SuffixDrafter, PastOutputsServeTheirScopeAlone) {
  const SpeculationOptions options = options_with(DraftMethod::kSuffix);
  SuffixDrafter drafter(options);
  Speculator speculator(options);
  const ScopeOutputs::Scope mine = {.owner = 1, .salt = "mine"};
  const Tokens text = tokens_of({5, 1, 2, 3});
  const auto opened = [&](const ScopeOutputs::Scope& scope) {
    return speculator.open({.tokens_expected = 100, .scope = scope});
  };
  const auto first = opened(mine);
  speculator.note_output(*first, tokens_of({7, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(propose(drafter, *opened(mine), text).tokens, tokens_of({4, 5, 6}));
  for (const ScopeOutputs::Scope& other :
       {ScopeOutputs::Scope{2, "mine"}, ScopeOutputs::Scope{1, "other"}, ScopeOutputs::Scope{}}) {
    EXPECT_TRUE(propose(drafter, *opened(other), text).tokens.empty()) << other.salt;
  }
  const auto running = opened(mine);
  speculator.forget(1);
  EXPECT_TRUE(propose(drafter, *running, text).tokens.empty()) << "also for who runs";
  EXPECT_TRUE(propose(drafter, *opened(mine), text).tokens.empty());
}

TEST(ScopeOutputs, WhoOpensManyForgetsHisOwn) {
  ScopeOutputs scopes(3, 4);
  const ScopeOutputs::Scope mine = {.owner = 1, .salt = "mine"};
  scopes.open(mine)->add(tokens_of({1, 2, 3, 4}));
  for (int i = 0; i < 500; ++i) scopes.open({.owner = 2, .salt = std::to_string(i)});
  EXPECT_EQ(scopes.open(mine)->half(0).outputs, 1u) << "another owner has more";
  scopes.open({.owner = 2, .salt = "499"})->add(tokens_of({1, 2, 3, 4}));
  for (int i = 500; i < 600; ++i) scopes.open({.owner = 2, .salt = std::to_string(i)});
  EXPECT_EQ(scopes.open({.owner = 2, .salt = "499"})->half(0).outputs, 0u);
}

TEST(PastOutputs, KeepTheNewestWithinTheirBounds) {
  PastOutputs outputs(3, 4, 1000);
  const auto kept = [&](std::uint32_t number) {
    const Tokens wanted = tokens_of({number, 1, 2, 3, number});
    for (std::size_t age = 0; age < 2; ++age) {
      const Tokens& text = outputs.half(age).text;
      if (std::search(text.begin(), text.end(), wanted.begin(), wanted.end()) != text.end()) {
        return true;
      }
    }
    return false;
  };
  for (std::uint32_t i = 10; i < 30; ++i) {
    outputs.add(tokens_of({i, 1, 2, 3, i}));
    EXPECT_TRUE(kept(i) && (i == 10 || kept(i - 1)));
    EXPECT_FALSE(i >= 14 && kept(i - 4));
  }
  for (std::uint32_t i = 0; i < 50; ++i) outputs.add(Tokens(90, TokenId(i)));
  EXPECT_LE(outputs.half(0).text.size() + outputs.half(1).text.size(), 1000u);
  outputs.add(Tokens(5000, TokenId(7)));
  EXPECT_LE(outputs.half(0).text.size(), 500u) << "of a longer output the end is kept";
}

TEST(PredictionDrafter, FollowsThePredictionAndFindsItAgain) {
  Speculator speculator(options_with(DraftMethod::kPrediction));
  const auto predicted =
      std::make_shared<PredictedText>(tokens_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  const auto drafting = speculator.open({.prediction = speculator.predict(predicted)});
  PredictionDrafter drafter;
  Tokens tokens = tokens_of({90, 91});  // the prompt
  const auto after = [&](std::initializer_list<std::uint32_t> more) {
    for (const std::uint32_t value : more) tokens.emplace_back(value);
    return propose(drafter, *drafting, tokens, 2, 3).tokens;
  };
  EXPECT_EQ(after({}), tokens_of({1, 2, 3})) << "from the beginning";
  EXPECT_EQ(after({1, 2}), tokens_of({3, 4, 5}));
  EXPECT_TRUE(after({50}).empty()) << "the output left it";
  EXPECT_TRUE(after({5, 6}).empty());
  EXPECT_EQ(after({7}), tokens_of({8, 9, 10})) << "three tokens are enough to find it again";
  EXPECT_EQ(after({8, 9, 10, 11}), tokens_of({12}));
  EXPECT_TRUE(after({12}).empty());
  EXPECT_EQ(speculator.predict({}), nullptr);
  const TokenIndex* const index = &predicted->index();
  EXPECT_EQ(&speculator.predict(predicted)->index(), index) << "requests of one body share it";
}

TEST(RecordedDrafter, IsWrongAsOftenAsAsked) {
  RecordedDrafter drafter({.wrong = 0.3, .tokens_max = 60, .vocabulary = 100, .seed = 1});
  const Tokens text = drawn_text(1, 600, 100);
  drafter.record(text);
  SequenceDrafting drafting;
  std::uint64_t wrong = 0;
  for (std::size_t begin = 1; begin <= 540; ++begin) {
    const Tokens begun(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin));
    const Tokens drafted = propose(drafter, drafting, begun).tokens;
    ASSERT_EQ(drafted.size(), 60u);
    for (std::size_t i = 0; i < 60; ++i) wrong += drafted[i] == text[begin + i] ? 0 : 1;
  }
  EXPECT_NEAR(static_cast<double>(wrong) / (540 * 60), 0.3, 0.01);
}

}  // namespace
}  // namespace pagoda::speculate
