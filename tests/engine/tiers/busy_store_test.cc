// A slow store keeps no other store waiting.
#include <gtest/gtest.h>

#include <tuple>

#include "engine/tiers/toy_fixture.h"

namespace pagoda::engine {
namespace {

enum class Slowness {
  kTakesNone,  // too much waits already
  kEndsNone,   // it takes writes, and none of them ends
};

void make_slow(ScriptedStore& store, Slowness slowness, bool is_slow) {
  (slowness == Slowness::kTakesNone ? store.is_busy : store.holds_writes) = is_slow;
  if (!is_slow) store.end_writes();
}

class BusyStores : public testing::TestWithParam<std::tuple<Slowness, bool, WriteMode>> {
 protected:
  static constexpr std::uint32_t kBlocks = 60;

  // Sends prompts that together are twice the pool, one after another.
  static void ask(ToyFixture& fixture) {
    for (std::uint32_t i = 0; i < 6; ++i) {
      Request request = toy_request(80, 3);
      request.prompt.front() = TokenId(2 + i);
      const auto heard = fixture.submit(request);
      // A slow store is never idle: so many steps suffice.
      fixture.run(60);
      EXPECT_EQ(heard->answers[0].tokens, fixture.alone(request)) << "prompt " << i;
    }
  }
};

TEST_P(BusyStores, KeepNobodyWaiting) {
  const auto [slowness, is_first, mode] = GetParam();
  ToyFixture alone({.blocks = kBlocks, .write = mode, .load = LoadMode::kAlways});
  alone.store.holds_reads = false;
  ask(alone);
  ASSERT_GE(alone.store.pages.size(), 6u * 19);

  ScriptedStore slow;
  slow.holds_reads = false;
  make_slow(slow, slowness, true);
  ToyFixtureOptions options{.blocks = kBlocks, .write = mode, .load = LoadMode::kAlways};
  (is_first ? options.nearer : options.farther).push_back(&slow);
  ToyFixture fixture(options);
  fixture.store.holds_reads = false;
  ask(fixture);
  EXPECT_EQ(fixture.store.pages.size(), alone.store.pages.size());
  EXPECT_EQ(slow.pages.size(), 0u);
  // The store keeps few pages from being evicted.
  EXPECT_LE(slow.writes.size(), kBlocks / 4 / 2 + 1);

  make_slow(slow, slowness, false);
  fixture.run();
  EXPECT_GT(slow.pages.size(), kBlocks / 2) << "what waited for it and is still there";
  EXPECT_EQ(fixture.core().tiers()->writer().pages_pinned(), 0u);
  EXPECT_EQ(fixture.wrong_page(), "");
}

// A block that waits for a store is evicted and computed again: the block computed last is written.
TEST(BusyStore, GetsABlockThatWasComputedAgainWhileItWaited) {
  ToyFixture fixture(
      {.write = WriteMode::kThrough, .load = LoadMode::kAlways, .writes_running_max = 1});
  fixture.store.holds_reads = false;
  fixture.store.holds_writes = true;
  const Request request = toy_request(80, 3);
  fixture.submit(request);
  fixture.run(60);
  fixture.clear_pool();
  Request other = request;  // takes the nodes of the first request
  other.prompt.front() = TokenId(2);
  for (const Request& each : {other, request}) {
    fixture.submit(each);
    fixture.run(60);
  }
  ASSERT_TRUE(fixture.store.pages.empty());
  fixture.store.holds_writes = false;
  fixture.store.end_writes();
  fixture.run();
  EXPECT_GE(fixture.store.pages.size(), 2 * 19u);
  EXPECT_EQ(fixture.wrong_page(), "");
}

INSTANTIATE_TEST_SUITE_P(
    All, BusyStores,
    testing::Combine(testing::Values(Slowness::kTakesNone, Slowness::kEndsNone), testing::Bool(),
                     testing::Values(WriteMode::kUse, WriteMode::kThrough)));

}  // namespace
}  // namespace pagoda::engine
