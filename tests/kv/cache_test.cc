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

// The copy reads rows that are there; what is written comes after them.
TEST(OpenLeaf, ThatIsReadByACopyIsWrittenFurtherInPlace) {
  Desk desk(Desk::small(8));
  Sequence writer = desk.run(counting(1, 6));
  const Tokens prompt = counting(1, 9);
  auto outcome =
      desk.cache().open(desk.everyone(), desk.cache().match(desk.everyone(), prompt), prompt);
  Opened& opened = std::get<Opened>(outcome);
  const BlockId read = opened.copies.at(0).from;
  EXPECT_EQ(read, writer.table(0)[1]);
  EXPECT_EQ(desk.cache().blocks_needed(writer, 7), 0u);
  EXPECT_TRUE(std::get<std::vector<Copy>>(desk.cache().reserve(writer, 7)).empty());
  EXPECT_EQ(writer.table(0)[1], read);
  desk.cache().commit(writer, tokens_of({7}));
  Sequence twin = desk.cache().fork(writer);
  EXPECT_EQ(desk.cache().blocks_needed(writer, 8), 1u) << "a fork is another matter";
  desk.finish(opened.copies);
  EXPECT_EQ(desk.cache().blocks_needed(writer, 8), 1u);
  desk.cache().close(twin);
  EXPECT_EQ(desk.cache().blocks_needed(writer, 8), 0u);
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
  const BlockPool* pool = nullptr;
  options.on_join = [&](BlockId mine, BlockId existing) {
    joined.emplace_back(mine, existing);
    EXPECT_EQ(pool->references(mine), 1u);
    EXPECT_EQ(pool->references(existing), 2u) << "both are held";
  };
  Desk desk(options);
  pool = &desk.cache().pool();
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

TEST(NoSharing, FindsAndPublishesNothingAndFreesAtOnce) {
  CacheOptions options = Desk::small(12);
  options.share = false;
  options.slices = {{0}, {5}};
  Desk desk(options);
  Sequence one = desk.run(counting(1, 10));
  EXPECT_EQ(one.tokens_computed(), 10u);
  EXPECT_EQ(desk.matched(counting(1, 10)), 0u);
  EXPECT_EQ(desk.cache().tree().nodes(), 1u) << "the root";
  EXPECT_EQ(desk.cache().pool().blocks_free(), 7u) << "three blocks, one of them left the window";
  Sequence two = desk.run(counting(1, 10));
  EXPECT_EQ(desk.cache().blocks_joined(), 0u);
  EXPECT_FALSE(desk.feed(two, counting(11, 10)));
  desk.cache().close(two);
  EXPECT_EQ(desk.cache().pool().blocks_free(), 7u);
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 0u);
}

TEST(NoSharing, LeavesForksWhatTheyShare) {
  CacheOptions options = Desk::small(8);
  options.share = false;
  Desk desk(options);
  Sequence one = desk.run(counting(1, 6));
  Sequence two = desk.cache().fork(one);
  EXPECT_EQ(desk.cache().pool().blocks_free(), 6u);
  ASSERT_TRUE(desk.feed(two, counting(7, 3)));
  EXPECT_EQ(two.table(0)[0], one.table(0)[0]);
  EXPECT_NE(two.table(0)[1], one.table(0)[1]);
  desk.cache().close(one);
  EXPECT_EQ(desk.cache().pool().references(two.table(0)[0]), 1u);
  desk.cache().close(two);
  EXPECT_EQ(desk.cache().pool().blocks_free(), 8u);
}

TEST(Namespaces, NeverMix) {
  Desk desk(Desk::small(8));
  const Domain adapted = desk.domain("model", "", "adapter");
  const Domain other = desk.domain("other", "");
  desk.serve(counting(1, 8));
  EXPECT_EQ(desk.matched(adapted, counting(1, 8)), 0u);
  EXPECT_EQ(desk.matched(other, counting(1, 8)), 0u);
  desk.serve(other, counting(1, 8));
  desk.cache().check();
  EXPECT_EQ(desk.matched(adapted, counting(1, 8)), 0u);
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 4u) << "the same tokens, twice";
  EXPECT_EQ(desk.domain("other", "").root(), other.root());
}

}  // namespace
}  // namespace pagoda::kv
