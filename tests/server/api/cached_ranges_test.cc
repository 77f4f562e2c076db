// "cached_ranges" of "cache_explain": which tokens came from where.
#include <gtest/gtest.h>

#include "server/api/cached_ranges.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

const std::vector<std::string> kTiers = {"host", "disk"};

Json range(std::uint64_t first, std::uint64_t tokens, const char* tier) {
  return {{"first", first}, {"tokens", tokens}, {"tier", tier}};
}

engine::LoadRecord loaded(std::initializer_list<engine::LoadedRange> ranges) {
  engine::LoadRecord load;
  for (const engine::LoadedRange& range : ranges) load.add(range);
  return load;
}

TEST(CachedRanges, MemoryComesFirstThenWhatTiersGave) {
  const auto load =
      loaded({{.first = 16, .end = 32, .store = 0}, {.first = 32, .end = 64, .store = 1}});
  EXPECT_EQ(cached_ranges_json(100, 64, load, kTiers),
            Json::array({range(0, 16, "memory"), range(16, 16, "host"), range(32, 32, "disk")}));
}

TEST(CachedRanges, ATailInMemoryStandsBehindATiersBlocks) {
  const auto load = loaded({{.first = 0, .end = 32, .store = 1}});
  EXPECT_EQ(cached_ranges_json(40, 39, load, kTiers),
            Json::array({range(0, 32, "disk"), range(32, 7, "memory")}));
}

TEST(CachedRanges, WhatCameAndWasLostBeforeTheStartIsComputed) {
  const auto load = loaded({{.first = 16, .end = 64, .store = 1}});
  EXPECT_EQ(cached_ranges_json(100, 32, load, kTiers),
            Json::array({range(0, 16, "memory"), range(16, 16, "disk")}));
  EXPECT_EQ(cached_ranges_json(100, 0, load, kTiers), Json::array());
}

TEST(CachedRanges, WhatCameFromTheBackIsNotComputedThoughItWasNotThereAtTheStart) {
  const auto load = loaded({{.first = 48, .end = 80, .store = 1, .after_start = true}});
  EXPECT_EQ(cached_ranges_json(100, 16, load, kTiers),
            Json::array({range(0, 16, "memory"), range(48, 32, "disk")}));
}

TEST(CachedRanges, TokensThatCameTwiceAreToldOnce) {
  const auto load =
      loaded({{.first = 0, .end = 32, .store = 1}, {.first = 0, .end = 48, .store = 0}});
  EXPECT_EQ(cached_ranges_json(100, 48, load, kTiers),
            Json::array({range(0, 32, "disk"), range(32, 16, "host")}));
}

TEST(CachedRanges, AMatchIsOfTheTiersThatGaveItsTokens) {
  const Json ranges = Json::array({range(0, 16, "memory"), range(16, 16, "host"),
                                   range(32, 32, "disk"), range(80, 16, "disk")});
  const auto matched = [&](std::uint64_t tokens) { return matched_by_tier_json(ranges, tokens); };
  EXPECT_EQ(matched(64), Json({{"memory", 16}, {"tier", 48}}));
  EXPECT_EQ(matched(67), Json({{"memory", 19}, {"tier", 48}})) << "a tail in memory";
  EXPECT_EQ(matched(40), Json({{"memory", 16}, {"tier", 24}}));
  EXPECT_EQ(matched(0), Json({{"memory", 0}, {"tier", 0}}));
}

TEST(CachedRanges, NeighboursFromOneStoreAreOneRange) {
  const auto load =
      loaded({{.first = 0, .end = 16, .store = 1}, {.first = 16, .end = 32, .store = 1}});
  ASSERT_EQ(load.ranges.size(), 1u);
  EXPECT_EQ(load.tokens[1], 32u);
}

TEST(CachedRanges, AnAnswerThatIsExplainedHasThem) {
  StoryFixture fixture;
  const Json body = {{"prompt", "Once upon a time there was a little girl named Lily"},
                     {"max_tokens", 1},
                     {"cache_explain", true}};
  EXPECT_EQ(fixture.complete(body)["cache_explain"]["cached_ranges"], Json::array());
  const Json again = fixture.complete(body)["cache_explain"];
  EXPECT_EQ(again["cached_ranges"], Json::array({range(0, again["matched_tokens"], "memory")}));
  EXPECT_FALSE(fixture.ask("/cache/explain", body).contains("cached_ranges"))
      << "nothing was computed or loaded";
}

TEST(TokenTexts, TogetherAreThePrompt) {
  StoryFixture fixture;
  const Json reply = fixture.ask("/tokenize", {{"prompt", "Tom had a \"big\" car"},
                                               {"return_token_texts", true},
                                               {"add_special_tokens", false}});
  std::string all;
  for (const Json& text : reply["token_texts"]) all += text.get<std::string>();
  EXPECT_EQ(all, " Tom had a \"big\" car");
  EXPECT_EQ(reply["token_texts"].size(), reply["tokens"].size());
}

TEST(TokenTexts, ACharacterOfSeveralTokensIsTheTextOfTheLast) {
  StoryFixture fixture;
  const Json reply = fixture.ask(
      "/tokenize",
      {{"prompt", "x\u202ey"}, {"return_token_texts", true}, {"add_special_tokens", false}});
  const Json& texts = reply["token_texts"];
  ASSERT_EQ(texts.size(), reply["tokens"].size());
  const auto character = std::find(texts.begin(), texts.end(), "\u202e");
  ASSERT_NE(character, texts.end()) << texts;
  ASSERT_GE(character - texts.begin(), 3) << "it has three bytes, each a token";
  EXPECT_EQ(*(character - 1), "");
  EXPECT_EQ(*(character - 2), "");
}

}  // namespace
}  // namespace pagoda::server
