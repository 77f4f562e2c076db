// Advice from curves that are made by hand, and of a server whose cache is too small.
#include "server/api/cache_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using AdviceKind = CacheAdvice::Kind;
using Rates = std::array<double, kv::CurveStats::kPoints>;

constexpr std::uint64_t kMebibyte = 1 << 20;
constexpr std::array<double, kv::CurveStats::kPoints> kTimesToday = {
    1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 3.0 / 4, 1, 1.5, 2, 3, 4, 8, 16};

// A cache of 1,024 blocks, by default of 1 MiB each.
kv::CurveStats curve_with(const Rates& rates) {
  kv::CurveStats curve;
  curve.blocks = 1024;
  curve.blocks_asked = 100'000;
  curve.policy = "lru";
  for (std::size_t i = 0; i < rates.size(); ++i) {
    curve.lru[i] = {static_cast<std::uint64_t>(1024 * kTimesToday[i]), rates[i]};
  }
  curve.rates[0] = {"lru", rates[3], rates[5], rates[7]};
  curve.policies = 1;
  return curve;
}

// 80 % of the rise from 61 to 75 % end at 72.2 %, which three times the size passes.
constexpr Rates kRising = {0.1, 0.2, 0.3, 0.5, 0.55, 0.61, 0.66, 0.7, 0.74, 0.745, 0.75, 0.75};

std::vector<std::string> texts_of(const kv::CurveStats& curve,
                                  const std::vector<DtypeBlock>& smaller = {}) {
  std::vector<std::string> texts;
  for (const CacheAdvice& advice : advise_on_cache(curve, kMebibyte, smaller)) {
    texts.push_back(advice.text);
  }
  return texts;
}

TEST(CacheAdvice, MemoryThatGivesMostOfTheRise) {
  const std::vector<CacheAdvice> advice = advise_on_cache(curve_with(kRising), kMebibyte, {});
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].kind, AdviceKind::kMemory);
  EXPECT_EQ(advice[0].text, "2.00 GiB more would raise hits from 61 to 74 %");
  EXPECT_EQ(advice[0].bytes_more, 2048 << 20);
  EXPECT_EQ(advice[0].hit_rate_now, 0.61);
  EXPECT_EQ(advice[0].hit_rate, 0.74);
}

TEST(CacheAdvice, TheMostExactDtypeThatDoesTheSame) {
  // 288 KiB a block make 3,640 blocks of 1 GiB, between 3,072 (74 %) and 4,096 (74.5 %); 512 KiB
  // make 2,048 (70 %), which is less than more memory would give.
  const DtypeBlock int8 = {"int8", 512 << 10};
  const DtypeBlock int4 = {"int4", 288 << 10};
  const DtypeBlock int2 = {"int2", 144 << 10};
  EXPECT_THAT(texts_of(curve_with(kRising), {int2, int4, int8}),
              testing::ElementsAre("2.00 GiB more would raise hits from 61 to 74 %",
                                   "int4 KV would do it in today's memory"));
  EXPECT_THAT(texts_of(curve_with(kRising), {int8}),
              testing::ElementsAre("2.00 GiB more would raise hits from 61 to 74 %",
                                   "int8 KV would raise hits from 61 to 70 % in today's memory"));
  const DtypeBlock hardly = {"fp30", 1000 << 10};
  EXPECT_EQ(texts_of(curve_with(kRising), {hardly}).size(), 1u);
}

TEST(CacheAdvice, MemoryThatGivesNothing) {
  constexpr Rates kFlat = {0.1, 0.2, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.61, 0.61, 0.61, 0.61};
  const std::vector<CacheAdvice> advice = advise_on_cache(curve_with(kFlat), kMebibyte, {});
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].text, "768.00 MiB less would cost no hits: 60 % as now");
  EXPECT_EQ(advice[0].bytes_more, -(768 << 20));
}

TEST(CacheAdvice, APolicyThatFindsMore) {
  kv::CurveStats curve = curve_with(kRising);
  curve.rates[1] = {"arc", 0.5, 0.66, 0.7};
  curve.rates[2] = {"s3fifo", 0.5, std::nullopt, 0.9};
  curve.policies = 3;
  EXPECT_THAT(texts_of(curve),
              testing::Contains("the policy arc would raise hits from 61 to 66 % in today's "
                                "memory"));
  curve.rates[1].same = 0.625;
  EXPECT_EQ(texts_of(curve).size(), 1u);
}

TEST(CacheAdvice, OfAnotherPolicyThreeSizesAreKnown) {
  kv::CurveStats curve = curve_with(kRising);
  curve.policy = "arc";
  curve.rates[1] = {"arc", 0.4, 0.5, 0.6};
  curve.rates[0].same = 0.5;
  curve.policies = 2;
  EXPECT_THAT(texts_of(curve),
              testing::ElementsAre("1.00 GiB more would raise hits from 50 to 60 %"));
}

TEST(CacheAdvice, FewBlocksGiveNone) {
  kv::CurveStats curve = curve_with(kRising);
  curve.blocks_asked = kAdviceBlocksMin - 1;
  EXPECT_TRUE(texts_of(curve).empty());
  EXPECT_TRUE(texts_of({}).empty()) << "there is no curve";
}

// Prompts that together need 1.3 times the cache, asked for in turns: an LRU cache of its size
// finds nothing, one of 1.5 times the size all of the second round.
TEST(CacheAdvice, AServerWithTooSmallACacheSaysSo) {
  StoryFixture fixture;
  const auto info = [&] { return Json::parse(fixture.get("/server_info").body); };
  EXPECT_EQ(info()["advice"], Json::array());
  const std::uint64_t blocks = Json::parse(fixture.get("/cache/curve").body)["blocks"];
  constexpr std::uint64_t kPromptBlocks = 30;
  const std::uint64_t prompts = blocks * 13 / 10 / kPromptBlocks + 1;
  for (std::uint64_t i = 0; i < 2 * prompts; ++i) {
    std::vector<std::uint64_t> ids(kPromptBlocks * 16 + 1);
    for (std::uint64_t at = 0; at < ids.size(); ++at) ids[at] = 3 + (i % prompts * 11 + at) % 500;
    fixture.complete({{"prompt", ids}, {"max_tokens", 1}});
  }
  Json advice = info()["advice"];
  while (advice.empty()) advice = info()["advice"];  // the curve is published when it is idle
  EXPECT_EQ(advice[0]["kind"], "memory");
  EXPECT_GT(advice[0]["bytes_more"], 0);
  EXPECT_GE(advice[0]["hit_rate"], advice[0]["hit_rate_now"].get<double>() + 0.3);
  EXPECT_THAT(advice[0]["text"].get<std::string>(), testing::HasSubstr("more would raise hits"));
  EXPECT_EQ(Json::parse(fixture.get("/cache/curve").body)["advice"], info()["advice"]);
}

}  // namespace
}  // namespace pagoda::server
