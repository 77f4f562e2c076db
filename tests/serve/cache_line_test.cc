#include "serve/cache_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::serve {
namespace {

using testing::HasSubstr;

kv::CurveStats curve_of(const kv::PolicyRates& rates, std::uint64_t blocks_asked) {
  kv::CurveStats stats;
  stats.blocks = 100;
  stats.blocks_asked = blocks_asked;
  stats.policy = rates.policy;
  stats.policies = 1;
  stats.rates[0] = rates;
  return stats;
}

engine::Snapshot prompts(std::uint64_t tokens, std::uint64_t cached) {
  engine::Snapshot now;
  now.prompt_tokens = tokens;
  now.prompt_tokens_cached = cached;
  return now;
}

TEST(CacheLine, SaysWhatHalfAndTwiceTheMemoryWouldHaveGivenUnderThePolicyThatRan) {
  kv::CurveStats stats = curve_of({.policy = "lru", .half = 0.1, .same = 0.2, .twice = 0.3}, 12345);
  stats.policies = 2;
  stats.policy = "arc";
  stats.rates[1] = {.policy = "arc", .half = 0.25, .same = 0.3333, .twice = 0.5};
  EXPECT_EQ(cache_line(prompts(200000, 50000), stats),
            "of 200,000 prompt tokens the cache had 50,000 (25.0 %); of 12,345 blocks looked up "
            "memory had about 33.3 %, half of it would have had 25.0 %, twice 50.0 %\n");
  stats.blocks_asked = 1;
  EXPECT_THAT(cache_line(prompts(200000, 50000), stats), HasSubstr(" of 1 block looked up "));
}

// After a restart memory has nothing, and the disk has all: that is no miss.
TEST(CacheLine, CountsWhatCameFromTiersAmongWhatTheCacheHad) {
  engine::Snapshot now = prompts(3547, 3536);
  now.prompt_tokens_loaded[0] = 3500;
  now.prompt_tokens_loaded[1] = 36;
  const kv::CurveStats stats =
      curve_of({.policy = "lru", .half = 0.0, .same = 0.0, .twice = 0.0}, 221);
  EXPECT_EQ(cache_line(now, stats),
            "of 3,547 prompt tokens the cache had 3,536 (99.7 %), 3,536 of them from tiers; half "
            "or twice the memory would have found the same\n");
}

TEST(CacheLine, SaysAFigureOnce) {
  const std::string line = cache_line(
      prompts(80, 32), curve_of({.policy = "lru", .half = 0.4, .same = 0.4, .twice = 0.4}, 5));
  EXPECT_THAT(line, HasSubstr("(40.0 %)"));
  EXPECT_EQ(line.find("40.0 %"), line.rfind("40.0 %"));
}

TEST(CacheLine, LeavesOutWhatASampleDoesNotTell) {
  EXPECT_EQ(cache_line(prompts(100, 40),
                       curve_of({.policy = "s3fifo", .half = 0.5, .same = {}, .twice = {}}, 5)),
            "of 100 prompt tokens the cache had 40 (40.0 %)\n");
  EXPECT_EQ(cache_line(prompts(100, 40), {}), "of 100 prompt tokens the cache had 40 (40.0 %)\n");
}

TEST(CacheLine, IsEmptyBeforeTheFirstPrompt) {
  EXPECT_EQ(cache_line({}, curve_of({.policy = "lru", .half = {}, .same = {}, .twice = {}}, 0)),
            "");
}

}  // namespace
}  // namespace pagoda::serve
