// Pages on their way in: whose they are while they come, and after. All ways at once: cache_sim.h.
#include <gtest/gtest.h>

#include "kv/cache_desk.h"

namespace pagoda::kv {
namespace {

// A desk whose tier has the blocks of counting(1, 8) and whose pool has none of them.
class LoadTest : public testing::Test {
 protected:
  LoadTest() : desk_(options()) {
    desk_.serve(counting(1, 8));
    Sequence pressure = desk_.open(tokens_of({500}));
    for (const std::uint64_t blocks : {5, 6}) {  // the tail is copied out and goes, then the head
      for (const Move& move : desk_.cache().offload({.free_share_wanted = 1.0})) {
        desk_.cache().moved({move, true});
      }
      EXPECT_TRUE(
          std::holds_alternative<std::vector<Copy>>(desk_.cache().reserve(pressure, 4 * blocks)));
    }
  }

  static CacheOptions options() {
    CacheOptions options = Desk::small(6);
    options.tier_slots = 8;
    return options;
  }

  Match ask() { return desk_.cache().match(desk_.everyone(), counting(1, 9)); }

  Desk desk_;
};

TEST_F(LoadTest, ThatComesSecondGoesOnWithThePagesOfTheFirst) {
  Load first = std::get<Load>(desk_.cache().begin_load(ask()));
  Load second = std::get<Load>(desk_.cache().begin_load(ask()));
  ASSERT_EQ(first.moves.size(), 2u);
  ASSERT_EQ(second.moves.size(), 2u);
  for (const Move& move : first.moves) desk_.cache().moved({move, true}, &first);
  for (const Move& move : second.moves) desk_.cache().moved({move, true}, &second);
  desk_.cache().check();
  EXPECT_EQ(desk_.cache().pool().state(second.moves[0].block), BlockState::kFree);
  desk_.cache().finish_load(first);
  desk_.cache().clear();
  EXPECT_EQ(ask().tokens, 8u) << "the second has not opened it yet";
  desk_.cache().finish_load(second);
  desk_.cache().check();
}

TEST_F(LoadTest, ThatIsRefusedChangesNothing) {
  const Sequence big = desk_.run(counting(900, 17));
  const std::uint64_t evicted = desk_.cache().blocks_evicted();
  const auto outcome = desk_.cache().begin_load(ask());
  EXPECT_EQ(std::get<OutOfBlocks>(outcome).blocks_needed, 2u);
  EXPECT_EQ(std::get<OutOfBlocks>(outcome).blocks_available, 1u);
  desk_.cache().check();
  EXPECT_EQ(desk_.cache().blocks_evicted(), evicted);
  EXPECT_EQ(ask().nodes_in_tiers.size(), 2u);
}

TEST_F(LoadTest, WhoseMoveFailsForgetsTheCopy) {
  Load load = std::get<Load>(desk_.cache().begin_load(ask()));
  desk_.cache().moved({load.moves[0], true}, &load);
  desk_.cache().moved({load.moves[1], false}, &load);
  EXPECT_EQ(ask().tokens, 4u);
  EXPECT_TRUE(ask().nodes_in_tiers.empty());
  desk_.cache().finish_load(load);
  desk_.cache().check();
}

}  // namespace
}  // namespace pagoda::kv
