// Each rule of the cache by itself; cache_sim_test.cc has all of them at once.
#include "kv/cache.h"

#include <gtest/gtest.h>

#include <set>

#include "kv/cache_fixture.h"

namespace pagoda::kv {
namespace {

TEST(Match, OfARepeatedPromptIsPromptMinusOne) {
  for (const std::uint32_t length : {1u, 2u, 4u, 5u, 8u, 9u, 11u}) {
    CacheFixture fixture(CacheFixture::small(16));
    fixture.serve(counting(1, length));
    EXPECT_EQ(fixture.matched(counting(1, length)), length - 1);
    EXPECT_EQ(fixture.matched(counting(1, length) + counting(900, 5)), length);
  }
}

TEST(Match, OfNothingIsNothing) {
  CacheFixture fixture(CacheFixture::small(4));
  EXPECT_EQ(fixture.matched({}), 0u);
  EXPECT_EQ(fixture.matched(counting(1, 9)), 0u);
  fixture.serve(counting(1, 9));
  EXPECT_EQ(fixture.matched(counting(2, 9)), 0u);
}

TEST(Match, SharesWholeBlocksAndIsAPureQuestion) {
  CacheFixture fixture(CacheFixture::small(8));
  fixture.serve(counting(1, 8));
  const std::uint32_t idle = fixture.cache().pool().blocks_idle();
  const Match match = fixture.cache().match(fixture.everyone(), counting(1, 9));
  EXPECT_EQ(match.tokens, 8u);
  EXPECT_EQ(match.nodes.size(), 2u);
  EXPECT_EQ(match.partial, std::nullopt);
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), idle);
  auto outcome = fixture.cache().open(fixture.everyone(), match, counting(1, 9));
  const Opened& opened = std::get<Opened>(outcome);
  EXPECT_TRUE(opened.copies.empty());
  EXPECT_EQ(opened.sequence.tokens_computed(), 8u);
  for (std::size_t block = 0; block < 2; ++block) {
    const auto page = fixture.cache().tree().page(match.nodes[block], 0);
    EXPECT_EQ(opened.sequence.table(0)[block], page);
    EXPECT_EQ(fixture.cache().pool().references(*page), 1u);
  }
}

TEST(Match, ThatEndsInsideABlockCopiesTheRowsThatAgree) {
  CacheFixture fixture(CacheFixture::small(8));
  fixture.serve(counting(1, 8));
  const Tokens prompt = counting(1, 6) + tokens_of({99, 99, 99});
  const Match match = fixture.cache().match(fixture.everyone(), prompt);
  EXPECT_EQ(match.tokens, 6u);
  EXPECT_EQ(match.partial_tokens, 2u);
  const BlockId source = fixture.cache().tree().page(*match.partial, 0).value();
  auto outcome = fixture.cache().open(fixture.everyone(), match, prompt);
  Opened& opened = std::get<Opened>(outcome);
  ASSERT_EQ(opened.copies.size(), 1u);
  EXPECT_EQ(opened.copies[0].from, source);
  EXPECT_EQ(opened.copies[0].to, opened.sequence.table(0)[1]);
  EXPECT_NE(opened.copies[0].to, source);
  EXPECT_EQ(opened.copies[0].tokens, 2u);
  EXPECT_EQ(fixture.cache().pool().references(source), 1u) << "pinned until the copy is done";
  fixture.cache().copied(opened.copies[0]);
  EXPECT_EQ(fixture.cache().pool().state(source), BlockState::kIdle);
  EXPECT_TRUE(fixture.feed(opened.sequence, tokens_of({99, 99, 99})));
  EXPECT_EQ(fixture.matched(prompt + counting(1, 1)), 9u);
  EXPECT_EQ(fixture.matched(counting(1, 9)), 8u) << "the source is as it was";
}

TEST(PartialBlock, IsReusableWhileItsRequestRunsAndAfter) {
  CacheFixture fixture(CacheFixture::small(8));
  Sequence running = fixture.run(counting(1, 6));
  EXPECT_EQ(fixture.matched(counting(1, 7)), 6u);
  fixture.feed(running, tokens_of({7}));
  EXPECT_EQ(fixture.matched(counting(1, 9)), 7u);
  Sequence reader = fixture.open(counting(1, 9));
  EXPECT_EQ(reader.tokens_computed(), 7u);
  fixture.feed(reader, tokens_of({50}));
  fixture.cache().close(running);
  EXPECT_EQ(fixture.matched(counting(1, 9)), 7u);
  EXPECT_EQ(fixture.matched(counting(1, 7) + tokens_of({50, 51})), 8u);
}

// The copy reads rows that are there; what is written comes after them.
TEST(PartialBlock, ThatIsReadByACopyIsWrittenFurtherInPlace) {
  CacheFixture fixture(CacheFixture::small(8));
  Sequence writer = fixture.run(counting(1, 6));
  const Tokens prompt = counting(1, 9);
  auto outcome = fixture.cache().open(fixture.everyone(),
                                      fixture.cache().match(fixture.everyone(), prompt), prompt);
  Opened& opened = std::get<Opened>(outcome);
  const BlockId read = opened.copies.at(0).from;
  EXPECT_EQ(read, writer.table(0)[1]);
  EXPECT_EQ(fixture.cache().blocks_needed(writer, 7), 0u);
  EXPECT_TRUE(std::get<std::vector<Copy>>(fixture.cache().reserve(writer, 7)).empty());
  EXPECT_EQ(writer.table(0)[1], read);
  fixture.cache().commit(writer, tokens_of({7}));
  Sequence twin = fixture.cache().fork(writer);
  EXPECT_EQ(fixture.cache().blocks_needed(writer, 8), 1u) << "a fork is another matter";
  fixture.finish(opened.copies);
  EXPECT_EQ(fixture.cache().blocks_needed(writer, 8), 1u);
  fixture.cache().close(twin);
  EXPECT_EQ(fixture.cache().blocks_needed(writer, 8), 0u);
  EXPECT_EQ(fixture.matched(counting(1, 9)), 7u);
}

TEST(PartialBlock, MakesWayForALongerSiblingWithTheSameBeginning) {
  CacheFixture fixture(CacheFixture::small(8));
  fixture.serve(counting(1, 2));
  EXPECT_EQ(fixture.cache().tree().nodes(), 2u);
  fixture.serve(counting(1, 3));
  EXPECT_EQ(fixture.cache().tree().nodes(), 2u) << "replaced, not beside it";
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 1u);
  EXPECT_EQ(fixture.matched(counting(1, 4)), 3u);
  fixture.serve(tokens_of({1, 2, 9, 9}));
  EXPECT_EQ(fixture.cache().tree().nodes(), 3u) << "neither begins with the other";
  EXPECT_EQ(fixture.matched(counting(1, 4)), 3u);
  EXPECT_EQ(fixture.matched(tokens_of({1, 2, 9, 9, 9})), 4u);
}

TEST(PartialBlock, IsNotLeftWhereASiblingAlreadyBeginsWithIt) {
  CacheFixture fixture(CacheFixture::small(8));
  fixture.serve(counting(1, 4));
  fixture.serve(counting(1, 2));
  EXPECT_EQ(fixture.cache().tree().nodes(), 2u);
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 1u);
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 7u);
}

TEST(PartialBlock, OfARunningRequestMakesWayTooAndTheRequestGoesOn) {
  CacheFixture fixture(CacheFixture::small(8));
  Sequence slow = fixture.run(counting(1, 2));
  Sequence fast = fixture.run(counting(1, 3));
  EXPECT_EQ(fixture.cache().tree().nodes(), 2u);
  EXPECT_TRUE(fixture.feed(slow, tokens_of({50})));
  EXPECT_EQ(fixture.matched(tokens_of({1, 2, 50, 51})), 3u);
  EXPECT_EQ(fixture.matched(counting(1, 4)), 3u);
  fixture.cache().close(slow);
  fixture.cache().close(fast);
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 2u);
}

TEST(Commit, MakesGeneratedTokensAsReusableAsPrompts) {
  CacheFixture fixture(CacheFixture::small(8));
  Sequence sequence = fixture.run(counting(1, 3));
  for (std::uint32_t token = 4; token <= 10; ++token) fixture.feed(sequence, tokens_of({token}));
  EXPECT_EQ(fixture.matched(counting(1, 20)), 10u);
  fixture.cache().close(sequence);
  EXPECT_EQ(fixture.matched(counting(1, 20)), 10u);
}

TEST(Commit, IsWhatPublishes) {
  CacheFixture fixture(CacheFixture::small(8));
  Sequence sequence = fixture.open(counting(1, 9));
  (void)fixture.cache().reserve(sequence, 9);
  EXPECT_EQ(fixture.matched(counting(1, 9)), 0u) << "room is not rows";
  fixture.cache().commit(sequence, counting(1, 5));
  EXPECT_EQ(fixture.matched(counting(1, 9)), 5u);
  EXPECT_EQ(sequence.tokens_reserved(), 12u);
  EXPECT_DEATH(fixture.cache().commit(sequence, counting(6, 8)), "room is reserved");
}

TEST(Deduplication, ReleasesTheDuplicateAndShowsBothBlocksFirst) {
  CacheOptions options = CacheFixture::small(8);
  std::vector<std::pair<BlockId, BlockId>> duplicates;
  const BlockPool* pool = nullptr;
  options.on_deduplicate = [&](BlockId mine, BlockId existing) {
    duplicates.emplace_back(mine, existing);
    EXPECT_EQ(pool->references(mine), 1u);
    EXPECT_EQ(pool->references(existing), 2u) << "both are held";
  };
  CacheFixture fixture(options);
  pool = &fixture.cache().pool();
  const Tokens prompt = counting(1, 4);
  Sequence first = fixture.open(prompt);
  Sequence second = fixture.open(prompt);
  fixture.feed(first, prompt);
  EXPECT_TRUE(duplicates.empty());
  (void)fixture.cache().reserve(second, 4);
  const BlockId mine = second.table(0)[0];
  fixture.cache().commit(second, prompt);
  fixture.cache().check();
  ASSERT_EQ(duplicates.size(), 1u);
  EXPECT_EQ(duplicates[0], std::pair(mine, first.table(0)[0]));
  EXPECT_EQ(second.table(0)[0], first.table(0)[0]);
  EXPECT_EQ(fixture.cache().pool().references(first.table(0)[0]), 2u);
  EXPECT_EQ(fixture.cache().pool().state(mine), BlockState::kFree);
  EXPECT_EQ(fixture.cache().stats().blocks_deduplicated, 1u);
  EXPECT_EQ(fixture.cache().tree().nodes(), 2u);
}

TEST(Deduplication, AcquiresABlockThatNobodyHeld) {
  CacheFixture fixture(CacheFixture::small(8));
  Sequence late = fixture.open(counting(1, 4));
  fixture.serve(counting(1, 4));
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 1u);
  fixture.feed(late, counting(1, 4));
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 0u);
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 7u);
}

TEST(Fork, SharesEverythingAndCopiesOnWrite) {
  CacheFixture fixture(CacheFixture::small(8));
  Sequence one = fixture.run(counting(1, 6));
  Sequence two = fixture.cache().fork(one);
  EXPECT_EQ(two.tokens_computed(), 6u);
  EXPECT_EQ(two.table(0)[0], one.table(0)[0]);
  EXPECT_EQ(two.table(0)[1], one.table(0)[1]);
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 6u);
  const BlockId shared = one.table(0)[1];
  auto room = fixture.cache().reserve(two, 7);
  const auto copies = std::get<std::vector<Copy>>(room);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, shared);
  EXPECT_EQ(copies[0].to, two.table(0)[1]);
  EXPECT_EQ(copies[0].tokens, 2u);
  EXPECT_EQ(one.table(0)[1], shared);
  fixture.finish(copies);
  fixture.cache().commit(two, tokens_of({70}));
  EXPECT_TRUE(std::get<std::vector<Copy>>(fixture.cache().reserve(one, 7)).empty())
      << "the last holder writes in place";
  fixture.cache().commit(one, tokens_of({7}));
  fixture.cache().check();
  EXPECT_EQ(fixture.matched(counting(1, 8)), 7u);
  EXPECT_EQ(fixture.matched(counting(1, 6) + tokens_of({70, 71})), 7u);
}

TEST(Fork, OfAWholeBlockCopiesNothing) {
  CacheFixture fixture(CacheFixture::small(8));
  Sequence one = fixture.run(counting(1, 8));
  Sequence two = fixture.cache().fork(one);
  EXPECT_TRUE(std::get<std::vector<Copy>>(fixture.cache().reserve(two, 9)).empty());
  fixture.cache().commit(two, tokens_of({9}));
  fixture.cache().check();
  fixture.cache().close(one);
  fixture.cache().check();
  EXPECT_EQ(fixture.matched(counting(1, 10)), 9u);
}

TEST(Fork, TakesNoRoomThatItsTwinReserved) {
  CacheFixture fixture(CacheFixture::small(8));
  Sequence one = fixture.run(counting(1, 4));
  (void)fixture.cache().reserve(one, 12);
  Sequence two = fixture.cache().fork(one);
  EXPECT_EQ(one.tokens_reserved(), 12u);
  EXPECT_EQ(two.tokens_reserved(), 4u);
  fixture.cache().close(one);
  fixture.cache().close(two);
  fixture.cache().check();
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 7u);
}

TEST(Sequence, IsClosedWhenDroppedOverwrittenOrMovedFrom) {
  CacheFixture fixture(CacheFixture::small(8));
  {
    Sequence one = fixture.run(counting(1, 4));
    Sequence two = fixture.run(counting(100, 8));
    const Sequence moved = std::move(one);
    EXPECT_EQ(fixture.cache().pool().blocks_idle(), 0u);
    two = fixture.run(counting(200, 4));
    fixture.cache().check();
    EXPECT_EQ(fixture.cache().pool().blocks_idle(), 2u) << "what two held";
  }
  fixture.cache().check();
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 4u);
}

TEST(NoSharing, FindsAndPublishesNothingAndFreesAtOnce) {
  CacheOptions options = CacheFixture::small(12);
  options.share = false;
  options.groups = {{0}, {5}};
  CacheFixture fixture(options);
  Sequence one = fixture.run(counting(1, 10));
  EXPECT_EQ(one.tokens_computed(), 10u);
  EXPECT_EQ(fixture.matched(counting(1, 10)), 0u);
  EXPECT_EQ(fixture.cache().tree().nodes(), 1u) << "the root";
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 7u)
      << "three blocks, one of them left the window";
  Sequence two = fixture.run(counting(1, 10));
  EXPECT_EQ(fixture.cache().stats().blocks_deduplicated, 0u);
  EXPECT_FALSE(fixture.feed(two, counting(11, 10)));
  fixture.cache().close(two);
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 7u);
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 0u);
}

TEST(NoSharing, LeavesForksWhatTheyShare) {
  CacheOptions options = CacheFixture::small(8);
  options.share = false;
  CacheFixture fixture(options);
  Sequence one = fixture.run(counting(1, 6));
  Sequence two = fixture.cache().fork(one);
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 6u);
  ASSERT_TRUE(fixture.feed(two, counting(7, 3)));
  EXPECT_EQ(two.table(0)[0], one.table(0)[0]);
  EXPECT_NE(two.table(0)[1], one.table(0)[1]);
  fixture.cache().close(one);
  EXPECT_EQ(fixture.cache().pool().references(two.table(0)[0]), 1u);
  fixture.cache().close(two);
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 8u);
}

TEST(Namespaces, NeverMix) {
  CacheFixture fixture(CacheFixture::small(8));
  const CacheScope adapted = fixture.scope("model", "", "adapter");
  const CacheScope other = fixture.scope("other", "");
  fixture.serve(counting(1, 8));
  EXPECT_EQ(fixture.matched(adapted, counting(1, 8)), 0u);
  EXPECT_EQ(fixture.matched(other, counting(1, 8)), 0u);
  fixture.serve(other, counting(1, 8));
  fixture.cache().check();
  EXPECT_EQ(fixture.matched(adapted, counting(1, 8)), 0u);
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 4u) << "the same tokens, twice";
  EXPECT_EQ(fixture.scope("other", "").root(), other.root());
}

}  // namespace
}  // namespace pagoda::kv
