// A store that takes its time keeps no other store waiting.
#include <gtest/gtest.h>

#include <tuple>

#include "engine/tiers/toy_desk.h"

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

  // Prompts that together are twice the pool, one after another.
  static void ask(ToyDesk& desk) {
    for (std::uint32_t i = 0; i < 6; ++i) {
      Request request = toy_request(80, 3);
      request.prompt.front() = TokenId(2 + i);
      const auto heard = desk.submit(request);
      // A store that is slow is never idle: so many steps suffice.
      desk.run(60);
      EXPECT_EQ(heard->answers[0].tokens, desk.alone(request)) << "prompt " << i;
    }
  }
};

TEST_P(BusyStores, KeepNobodyWaiting) {
  const auto [slowness, is_first, mode] = GetParam();
  ToyDesk alone({.blocks = kBlocks, .write = mode, .load = LoadMode::kAlways});
  alone.store.holds_reads = false;
  ask(alone);
  ASSERT_GE(alone.store.pages.size(), 6u * 19);

  ScriptedStore slow;
  slow.holds_reads = false;
  make_slow(slow, slowness, true);
  ToyDeskOptions options{.blocks = kBlocks, .write = mode, .load = LoadMode::kAlways};
  (is_first ? options.nearer : options.farther).push_back(&slow);
  ToyDesk desk(options);
  desk.store.holds_reads = false;
  ask(desk);
  EXPECT_EQ(desk.store.pages.size(), alone.store.pages.size());
  EXPECT_EQ(slow.pages.size(), 0u);
  // Pages that it keeps from being evicted are few.
  EXPECT_LE(slow.writes.size(), kBlocks / 4 / 2 + 1);

  make_slow(slow, slowness, false);
  desk.run();
  EXPECT_GT(slow.pages.size(), kBlocks / 2) << "what waited for it and is still there";
  EXPECT_EQ(desk.core().tiers()->writer().pages_pinned(), 0u);
  EXPECT_EQ(desk.wrong_page(), "");
}

// A block that waits for a store is evicted and computed again: what is written is the one that is.
TEST(BusyStore, GetsABlockThatWasComputedAgainWhileItWaited) {
  ToyDesk desk({.write = WriteMode::kThrough, .load = LoadMode::kAlways, .writes_running_max = 1});
  desk.store.holds_reads = false;
  desk.store.holds_writes = true;
  const Request request = toy_request(80, 3);
  desk.submit(request);
  desk.run(60);
  desk.clear_pool();
  Request other = request;  // takes the nodes of the first
  other.prompt.front() = TokenId(2);
  for (const Request& each : {other, request}) {
    desk.submit(each);
    desk.run(60);
  }
  ASSERT_TRUE(desk.store.pages.empty());
  desk.store.holds_writes = false;
  desk.store.end_writes();
  desk.run();
  EXPECT_GE(desk.store.pages.size(), 2 * 19u);
  EXPECT_EQ(desk.wrong_page(), "");
}

INSTANTIATE_TEST_SUITE_P(
    All, BusyStores,
    testing::Combine(testing::Values(Slowness::kTakesNone, Slowness::kEndsNone), testing::Bool(),
                     testing::Values(WriteMode::kUse, WriteMode::kThrough)));

}  // namespace
}  // namespace pagoda::engine
