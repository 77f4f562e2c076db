// GET /cache/curve.
#include <gtest/gtest.h>

#include <set>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kCurvePrompt =
    "Once upon a time there was a little girl named Lily who loved to play outside in the park "
    "with her friend Tom every single day";

Json curve_of(StoryFixture& fixture) { return Json::parse(fixture.get("/cache/curve").body); }

// The curve is published when the engine is idle, and once a second.
Json curve_after(StoryFixture& fixture, std::uint64_t blocks_asked) {
  Json curve = curve_of(fixture);
  while (curve["blocks_asked"] != blocks_asked) curve = curve_of(fixture);
  return curve;
}

TEST(CacheCurve, SaysWhatSizesAndPoliciesWouldHaveGiven) {
  StoryFixture fixture;
  const Json before = curve_of(fixture);
  EXPECT_EQ(before["enabled"], true);
  EXPECT_EQ(before["blocks_asked"], 0);
  const Json body = {{"prompt", kCurvePrompt}, {"max_tokens", 2}, {"temperature", 0}};
  const int tokens = fixture.complete(body)["usage"]["prompt_tokens"];
  const int blocks = (tokens - 1) / 16;
  ASSERT_GT(blocks, 1);
  fixture.complete(body);
  const Json curve = curve_after(fixture, static_cast<std::uint64_t>(2 * blocks));

  EXPECT_EQ(curve["policy"], "lru");
  EXPECT_EQ(curve["sampling_rate"], 1.0);
  EXPECT_EQ(curve["bytes"], curve["blocks"].get<std::uint64_t>() * fixture.served().block_bytes);
  EXPECT_LE(curve["bytes"], 8 << 20);
  EXPECT_GT(curve["bytes"], 7 << 20);
  double rate = 0;
  std::uint64_t size = 0;
  for (const Json& point : curve["lru"]) {
    EXPECT_EQ(point["bytes"], point["blocks"].get<std::uint64_t>() * fixture.served().block_bytes);
    EXPECT_GT(point["blocks"], size);
    EXPECT_GE(point["hit_rate"], rate);
    size = point["blocks"];
    rate = point["hit_rate"];
  }
  EXPECT_EQ(rate, 0.5) << "the second request found what the first one asked for";
  EXPECT_EQ(size, 16 * curve["blocks"].get<std::uint64_t>());

  std::set<std::string> names;
  for (const Json& row : curve["policies"]) {
    names.insert(row["policy"]);
    ASSERT_EQ(row["points"].size(), 3u);
    EXPECT_EQ(row["points"][0]["blocks"], curve["blocks"].get<std::uint64_t>() / 2);
    EXPECT_EQ(row["points"][1]["blocks"], curve["blocks"]);
    EXPECT_EQ(row["points"][2]["blocks"], curve["blocks"].get<std::uint64_t>() * 2);
    for (const Json& point : row["points"]) {
      // s3fifo's hit rate is not known where not all blocks are tracked.
      if (row["policy"] == "s3fifo" && point["hit_rate"].is_null()) continue;
      EXPECT_EQ(point["hit_rate"], 0.5) << row["policy"];
    }
  }
  const std::set<std::string> expected = {"lru", "fifo", "lfu",  "slru",        "s3fifo",
                                          "arc", "ttl",  "cost", "continuation"};
  EXPECT_EQ(names, expected);
}

TEST(CacheCurve, ChangesNoAnswer) {
  StoryFixture with;
  StoryFixture without(100, false);
  EXPECT_EQ(curve_of(without), Json({{"enabled", false}}));
  for (int i = 0; i < 6; ++i) {
    const Json body = {{"prompt", std::string(kCurvePrompt) + std::to_string(i / 2)},
                       {"max_tokens", 12},
                       {"logprobs", 3},
                       {"seed", i}};
    const Json a = with.complete(body);
    const Json b = without.complete(body);
    EXPECT_EQ(a["choices"], b["choices"]);
    EXPECT_EQ(a["usage"]["prompt_tokens_details"]["cached_tokens"],
              b["usage"]["prompt_tokens_details"]["cached_tokens"]);
  }
}

TEST(CacheCurve, TakesOnlyGet) { EXPECT_EQ(StoryFixture().post("/cache/curve", {}).status, 405); }

}  // namespace
}  // namespace pagoda::server
