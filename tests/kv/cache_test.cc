// Each rule of the cache by itself; cache_sim_test.cc has all of them at once.
#include "kv/cache.h"

#include <gtest/gtest.h>

#include <set>

#include "kv/cache_desk.h"

namespace pagoda::kv {
namespace {

TEST(Match, OfARepeatedPromptIsPromptMinusOne) {
  for (const std::uint32_t length : {1u, 2u, 4u, 5u, 8u, 9u, 11u}) {
    Desk desk(Desk::small(16));
    desk.serve(counting(1, length));
    EXPECT_EQ(desk.matched(counting(1, length)), length - 1);
    EXPECT_EQ(desk.matched(counting(1, length) + counting(900, 5)), length);
  }
}

TEST(Match, OfNothingIsNothing) {
  Desk desk(Desk::small(4));
  EXPECT_EQ(desk.matched({}), 0u);
  EXPECT_EQ(desk.matched(counting(1, 9)), 0u);
  desk.serve(counting(1, 9));
  EXPECT_EQ(desk.matched(counting(2, 9)), 0u);
}

TEST(Match, SharesWholeBlocksAndIsAPureQuestion) {
  Desk desk(Desk::small(8));
  desk.serve(counting(1, 8));
  const std::uint32_t idle = desk.cache().pool().blocks_idle();
  const Match match = desk.cache().match(desk.everyone(), counting(1, 9));
  EXPECT_EQ(match.tokens, 8u);
  EXPECT_EQ(match.nodes.size(), 2u);
  EXPECT_EQ(match.partial, std::nullopt);
  EXPECT_EQ(desk.cache().pool().blocks_idle(), idle);
  auto outcome = desk.cache().open(desk.everyone(), match, counting(1, 9));
  const Opened& opened = std::get<Opened>(outcome);
  EXPECT_TRUE(opened.copies.empty());
  EXPECT_EQ(opened.sequence.tokens_computed(), 8u);
  for (std::size_t block = 0; block < 2; ++block) {
    const auto page = desk.cache().tree().page(match.nodes[block], 0);
    EXPECT_EQ(opened.sequence.table(0)[block], page);
    EXPECT_EQ(desk.cache().pool().references(*page), 1u);
  }
}

TEST(Match, ThatEndsInsideABlockCopiesTheRowsThatAgree) {
  Desk desk(Desk::small(8));
  desk.serve(counting(1, 8));
  const Tokens prompt = counting(1, 6) + tokens_of({99, 99, 99});
  const Match match = desk.cache().match(desk.everyone(), prompt);
  EXPECT_EQ(match.tokens, 6u);
  EXPECT_EQ(match.partial_tokens, 2u);
  const BlockId source = desk.cache().tree().page(*match.partial, 0).value();
  auto outcome = desk.cache().open(desk.everyone(), match, prompt);
  Opened& opened = std::get<Opened>(outcome);
  ASSERT_EQ(opened.copies.size(), 1u);
  EXPECT_EQ(opened.copies[0].from, source);
  EXPECT_EQ(opened.copies[0].to, opened.sequence.table(0)[1]);
  EXPECT_NE(opened.copies[0].to, source);
  EXPECT_EQ(opened.copies[0].tokens, 2u);
  EXPECT_EQ(desk.cache().pool().references(source), 1u) << "pinned until the copy is done";
  desk.cache().copied(opened.copies[0]);
  EXPECT_EQ(desk.cache().pool().state(source), BlockState::kIdle);
  EXPECT_TRUE(desk.feed(opened.sequence, tokens_of({99, 99, 99})));
  EXPECT_EQ(desk.matched(prompt + counting(1, 1)), 9u);
  EXPECT_EQ(desk.matched(counting(1, 9)), 8u) << "the source is as it was";
}

TEST(OpenLeaf, IsReusableWhileItsRequestRunsAndAfter) {
  Desk desk(Desk::small(8));
  Sequence running = desk.run(counting(1, 6));
  EXPECT_EQ(desk.matched(counting(1, 7)), 6u);
  desk.feed(running, tokens_of({7}));
  EXPECT_EQ(desk.matched(counting(1, 9)), 7u);
  Sequence reader = desk.open(counting(1, 9));
  EXPECT_EQ(reader.tokens_computed(), 7u);
  desk.feed(reader, tokens_of({50}));
  desk.cache().close(running);
  EXPECT_EQ(desk.matched(counting(1, 9)), 7u);
  EXPECT_EQ(desk.matched(counting(1, 7) + tokens_of({50, 51})), 8u);
}

TEST(OpenLeaf, ThatIsReadByACopyIsWrittenNoFurtherInPlace) {
  Desk desk(Desk::small(8));
  Sequence writer = desk.run(counting(1, 6));
  const Tokens prompt = counting(1, 9);
  auto outcome =
      desk.cache().open(desk.everyone(), desk.cache().match(desk.everyone(), prompt), prompt);
  Opened& opened = std::get<Opened>(outcome);
  const BlockId read = opened.copies.at(0).from;
  EXPECT_EQ(read, writer.table(0)[1]);
  auto room = desk.cache().reserve(writer, 7);
  const auto copies = std::get<std::vector<Copy>>(room);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, read);
  EXPECT_EQ(copies[0].tokens, 2u);
  EXPECT_NE(writer.table(0)[1], read);
  desk.cache().commit(writer, tokens_of({7}));
  desk.finish(copies);
  desk.finish(opened.copies);
  EXPECT_EQ(desk.matched(counting(1, 9)), 7u);
}

TEST(OpenLeaf, MakesWayForALongerSiblingWithTheSameBeginning) {
  Desk desk(Desk::small(8));
  desk.serve(counting(1, 2));
  EXPECT_EQ(desk.cache().tree().nodes(), 2u);
  desk.serve(counting(1, 3));
  EXPECT_EQ(desk.cache().tree().nodes(), 2u) << "replaced, not beside it";
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 1u);
  EXPECT_EQ(desk.matched(counting(1, 4)), 3u);
  desk.serve(tokens_of({1, 2, 9, 9}));
  EXPECT_EQ(desk.cache().tree().nodes(), 3u) << "neither begins with the other";
  EXPECT_EQ(desk.matched(counting(1, 4)), 3u);
  EXPECT_EQ(desk.matched(tokens_of({1, 2, 9, 9, 9})), 4u);
}

TEST(OpenLeaf, IsNotLeftWhereASiblingAlreadyBeginsWithIt) {
  Desk desk(Desk::small(8));
  desk.serve(counting(1, 4));
  desk.serve(counting(1, 2));
  EXPECT_EQ(desk.cache().tree().nodes(), 2u);
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 1u);
  EXPECT_EQ(desk.cache().pool().blocks_free(), 7u);
}

TEST(OpenLeaf, OfARunningRequestMakesWayTooAndTheRequestGoesOn) {
  Desk desk(Desk::small(8));
  Sequence slow = desk.run(counting(1, 2));
  Sequence fast = desk.run(counting(1, 3));
  EXPECT_EQ(desk.cache().tree().nodes(), 2u);
  EXPECT_TRUE(desk.feed(slow, tokens_of({50})));
  EXPECT_EQ(desk.matched(tokens_of({1, 2, 50, 51})), 3u);
  EXPECT_EQ(desk.matched(counting(1, 4)), 3u);
  desk.cache().close(slow);
  desk.cache().close(fast);
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 2u);
}

TEST(Commit, MakesGeneratedTokensAsReusableAsPrompts) {
  Desk desk(Desk::small(8));
  Sequence sequence = desk.run(counting(1, 3));
  for (std::uint32_t token = 4; token <= 10; ++token) desk.feed(sequence, tokens_of({token}));
  EXPECT_EQ(desk.matched(counting(1, 20)), 10u);
  desk.cache().close(sequence);
  EXPECT_EQ(desk.matched(counting(1, 20)), 10u);
}

TEST(Commit, IsWhatPublishes) {
  Desk desk(Desk::small(8));
  Sequence sequence = desk.open(counting(1, 9));
  (void)desk.cache().reserve(sequence, 9);
  EXPECT_EQ(desk.matched(counting(1, 9)), 0u) << "room is not rows";
  desk.cache().commit(sequence, counting(1, 5));
  EXPECT_EQ(desk.matched(counting(1, 9)), 5u);
  EXPECT_EQ(sequence.tokens_reserved(), 12u);
  EXPECT_DEATH(desk.cache().commit(sequence, counting(6, 8)), "room is reserved");
}

TEST(Join, GivesUpTheDuplicateAndShowsBothBlocksFirst) {
  CacheOptions options = Desk::small(8);
  std::vector<std::pair<BlockId, BlockId>> joined;
  options.on_join = [&](BlockId mine, BlockId existing) { joined.emplace_back(mine, existing); };
  Desk desk(options);
  const Tokens prompt = counting(1, 4);
  Sequence first = desk.open(prompt);
  Sequence second = desk.open(prompt);
  desk.feed(first, prompt);
  EXPECT_TRUE(joined.empty());
  (void)desk.cache().reserve(second, 4);
  const BlockId mine = second.table(0)[0];
  desk.cache().commit(second, prompt);
  desk.cache().check();
  ASSERT_EQ(joined.size(), 1u);
  EXPECT_EQ(joined[0], std::pair(mine, first.table(0)[0]));
  EXPECT_EQ(second.table(0)[0], first.table(0)[0]);
  EXPECT_EQ(desk.cache().pool().references(first.table(0)[0]), 2u);
  EXPECT_EQ(desk.cache().pool().state(mine), BlockState::kFree);
  EXPECT_EQ(desk.cache().blocks_joined(), 1u);
  EXPECT_EQ(desk.cache().tree().nodes(), 2u);
}

TEST(Join, WakesABlockThatNobodyHeld) {
  Desk desk(Desk::small(8));
  Sequence late = desk.open(counting(1, 4));
  desk.serve(counting(1, 4));
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 1u);
  desk.feed(late, counting(1, 4));
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 0u);
  EXPECT_EQ(desk.cache().pool().blocks_free(), 7u);
}

TEST(Fork, SharesEverythingAndCopiesOnWrite) {
  Desk desk(Desk::small(8));
  Sequence one = desk.run(counting(1, 6));
  Sequence two = desk.cache().fork(one);
  EXPECT_EQ(two.tokens_computed(), 6u);
  EXPECT_EQ(two.table(0)[0], one.table(0)[0]);
  EXPECT_EQ(two.table(0)[1], one.table(0)[1]);
  EXPECT_EQ(desk.cache().pool().blocks_free(), 6u);
  const BlockId shared = one.table(0)[1];
  auto room = desk.cache().reserve(two, 7);
  const auto copies = std::get<std::vector<Copy>>(room);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, shared);
  EXPECT_EQ(copies[0].to, two.table(0)[1]);
  EXPECT_EQ(copies[0].tokens, 2u);
  EXPECT_EQ(one.table(0)[1], shared);
  desk.finish(copies);
  desk.cache().commit(two, tokens_of({70}));
  EXPECT_TRUE(std::get<std::vector<Copy>>(desk.cache().reserve(one, 7)).empty())
      << "the last holder writes in place";
  desk.cache().commit(one, tokens_of({7}));
  desk.cache().check();
  EXPECT_EQ(desk.matched(counting(1, 8)), 7u);
  EXPECT_EQ(desk.matched(counting(1, 6) + tokens_of({70, 71})), 7u);
}

TEST(Fork, OfAWholeBlockCopiesNothing) {
  Desk desk(Desk::small(8));
  Sequence one = desk.run(counting(1, 8));
  Sequence two = desk.cache().fork(one);
  EXPECT_TRUE(std::get<std::vector<Copy>>(desk.cache().reserve(two, 9)).empty());
  desk.cache().commit(two, tokens_of({9}));
  desk.cache().check();
  desk.cache().close(one);
  desk.cache().check();
  EXPECT_EQ(desk.matched(counting(1, 10)), 9u);
}

TEST(Fork, TakesNoRoomThatItsTwinReserved) {
  Desk desk(Desk::small(8));
  Sequence one = desk.run(counting(1, 4));
  (void)desk.cache().reserve(one, 12);
  Sequence two = desk.cache().fork(one);
  EXPECT_EQ(one.tokens_reserved(), 12u);
  EXPECT_EQ(two.tokens_reserved(), 4u);
  desk.cache().close(one);
  desk.cache().close(two);
  desk.cache().check();
  EXPECT_EQ(desk.cache().pool().blocks_free(), 7u);
}

TEST(OutOfBlocks, IsAValueAndChangesNothing) {
  Desk desk(Desk::small(4));
  Sequence big = desk.run(counting(1, 9));
  desk.serve(counting(100, 4));
  ASSERT_EQ(desk.cache().pool().blocks_free(), 0u);
  const auto outcome = desk.cache().reserve(big, 17);
  const OutOfBlocks& shortage = std::get<OutOfBlocks>(outcome);
  EXPECT_EQ(shortage.blocks_needed, 2u);
  EXPECT_EQ(shortage.blocks_available, 1u);
  EXPECT_EQ(big.tokens_computed(), 9u);
  EXPECT_EQ(big.tokens_reserved(), 12u);
  EXPECT_EQ(desk.cache().blocks_evicted(), 0u);
  EXPECT_EQ(desk.matched(counting(100, 5)), 4u);
  EXPECT_TRUE(desk.feed(big, counting(10, 4))) << "what fits still fits";
}

TEST(OutOfBlocks, WhenOpeningLeavesTheSourceOfTheCopyInPlace) {
  Desk desk(Desk::small(2));
  Sequence big = desk.run(counting(1, 4));
  desk.serve(counting(100, 3));
  const Tokens prompt = counting(100, 5);
  const Match match = desk.cache().match(desk.everyone(), prompt);
  EXPECT_EQ(match.tokens, 3u);
  const auto outcome = desk.cache().open(desk.everyone(), match, prompt);
  EXPECT_EQ(std::get<OutOfBlocks>(outcome).blocks_needed, 1u);
  EXPECT_EQ(std::get<OutOfBlocks>(outcome).blocks_available, 0u);
  desk.cache().check();
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 1u);
  EXPECT_EQ(desk.matched(prompt), 3u);
}

TEST(Eviction, NeverTakesWhatSomeoneHolds) {
  Desk desk(Desk::small(6));
  Sequence held = desk.run(counting(1, 9));
  for (std::uint32_t i = 0; i < 20; ++i) desk.serve(counting(1000 + 100 * i, 9));
  EXPECT_GT(desk.cache().blocks_evicted(), 40u);
  EXPECT_EQ(desk.matched(counting(1, 20)), 9u);
  desk.cache().clear();
  desk.cache().check();
  EXPECT_EQ(desk.matched(counting(1, 20)), 9u);
  EXPECT_EQ(desk.cache().pool().blocks_free(), 3u);
}

TEST(Eviction, ByLruTakesTheTailOfAChainBeforeItsHead) {
  Desk desk(Desk::small(4));
  desk.serve(counting(1, 16));
  for (const std::uint64_t left : {12u, 8u, 4u, 0u}) {
    Sequence pressure = desk.open(counting(500, 1));
    ASSERT_TRUE(
        std::holds_alternative<std::vector<Copy>>(desk.cache().reserve(pressure, 16 - left)));
    desk.cache().check();
    EXPECT_EQ(desk.matched(counting(1, 17)), left);
  }
}

TEST(Eviction, ByLruTakesTheChainThatWasUsedLongestAgo) {
  Desk desk(Desk::small(4));
  desk.serve(counting(100, 8));
  desk.serve(counting(200, 8));
  desk.serve(counting(100, 9));  // again: 200 is older now; 9 tokens need a third block
  EXPECT_EQ(desk.matched(counting(100, 9)), 8u);
  EXPECT_EQ(desk.matched(counting(200, 9)), 4u);
}

TEST(Eviction, ByFifoTakesTheChainThatWasFilledFirst) {
  CacheOptions options = Desk::small(4);
  options.policy = &fifo_policy();
  Desk desk(options);
  {
    // So that blocks are not filled in the order of their numbers.
    Sequence first = desk.open(counting(1, 1));
    Sequence second = desk.open(counting(1, 1));
    (void)desk.cache().reserve(first, 8);
    (void)desk.cache().reserve(second, 8);
    desk.cache().close(first);
  }
  desk.serve(counting(100, 8));
  desk.serve(counting(200, 8));
  { const Sequence again = desk.open(counting(100, 9)); }
  desk.serve(counting(300, 4));
  EXPECT_EQ(desk.matched(counting(100, 9)), 4u) << "used last, but filled first";
  EXPECT_EQ(desk.matched(counting(200, 9)), 8u);
}

TEST(Eviction, TakesNoPageOfANodeWhileAnotherOfItsPagesIsRead) {
  CacheOptions options = Desk::small(16);
  options.slices = {{0}, {0}};
  Desk desk(options);
  desk.serve(counting(1, 3));
  const Tokens prompt = counting(1, 2) + tokens_of({90});
  std::vector<Copy> copies;
  {
    const Match match = desk.cache().match(desk.everyone(), prompt);
    copies = std::get<Opened>(desk.cache().open(desk.everyone(), match, prompt)).copies;
  }  // cancelled at once
  ASSERT_EQ(copies.size(), 2u);
  desk.cache().copied(copies[0]);
  desk.cache().clear();
  desk.cache().check();
  EXPECT_EQ(desk.matched(counting(1, 4)), 3u) << "the second page is still being copied";
  desk.cache().copied(copies[1]);
  desk.cache().clear();
  EXPECT_EQ(desk.cache().pool().blocks_free(), 16u);
}

TEST(Eviction, ABlockThatWasCopiedOutLeavesNoLater) {
  CacheOptions options = Desk::small(8);
  options.tier_slots = 8;
  Desk desk(options);
  desk.serve(counting(100, 12));
  desk.serve(counting(200, 12));
  const auto moves = desk.cache().offload({.free_share_wanted = 1.0, .moves_running_max = 1});
  ASSERT_EQ(moves.size(), 1u);
  desk.cache().moved({.move = moves[0], .done = true});
  desk.serve(counting(300, 12));  // two blocks are free, one must go
  EXPECT_EQ(desk.matched(counting(200, 13)), 12u);
  EXPECT_EQ(desk.matched(counting(100, 13)), 8u) << "the older tail, though it was copied last";
}

TEST(Eviction, OfOneBranchLeavesTheTrunk) {
  Desk desk(Desk::small(4));
  desk.serve(counting(1, 4) + counting(100, 4));
  desk.serve(counting(1, 4) + counting(200, 4));
  desk.serve(counting(300, 8));
  EXPECT_EQ(desk.matched(counting(1, 4) + counting(100, 5)), 4u);
  EXPECT_EQ(desk.matched(counting(1, 4) + counting(200, 5)), 8u);
}

TEST(Clear, FreesEveryIdleBlock) {
  CacheOptions options = Desk::small(16);
  options.slices = {{0}, {3}};
  Desk desk(options);
  desk.serve(counting(1, 9));
  desk.serve(counting(1, 5) + counting(100, 5));
  desk.cache().clear();
  desk.cache().check();
  EXPECT_EQ(desk.cache().pool().blocks_free(), 16u);
  EXPECT_EQ(desk.cache().tree().nodes(), 1u) << "the root";
  EXPECT_EQ(desk.matched(counting(1, 9)), 0u);
}

TEST(Sequence, IsClosedWhenDroppedOverwrittenOrMovedFrom) {
  Desk desk(Desk::small(8));
  {
    Sequence one = desk.run(counting(1, 4));
    Sequence two = desk.run(counting(100, 8));
    const Sequence moved = std::move(one);
    EXPECT_EQ(desk.cache().pool().blocks_idle(), 0u);
    two = desk.run(counting(200, 4));
    desk.cache().check();
    EXPECT_EQ(desk.cache().pool().blocks_idle(), 2u) << "what two held";
  }
  desk.cache().check();
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 4u);
}

TEST(Namespaces, NeverMix) {
  Desk desk(Desk::small(8));
  const Domain adapted = desk.cache().domain("model", "", "adapter");
  const Domain other = desk.cache().domain("other", "");
  desk.serve(counting(1, 8));
  EXPECT_EQ(desk.matched(adapted, counting(1, 8)), 0u);
  EXPECT_EQ(desk.matched(other, counting(1, 8)), 0u);
  desk.serve(other, counting(1, 8));
  desk.cache().check();
  EXPECT_EQ(desk.matched(adapted, counting(1, 8)), 0u);
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 4u) << "the same tokens, twice";
  EXPECT_EQ(desk.cache().domain("other", "").root, other.root);
}

}  // namespace
}  // namespace pagoda::kv
