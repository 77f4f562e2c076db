// Groups that keep a window of tokens, beside groups that keep them all.
#include <gtest/gtest.h>

#include "kv/cache_fixture.h"

namespace pagoda::kv {
namespace {

CacheOptions with_groups(std::uint32_t blocks, std::vector<memory::AttentionSpec> groups) {
  CacheOptions options = CacheFixture::small(blocks);
  options.groups = std::move(groups);
  return options;
}

// Which blocks of a chain have a page in the group.
std::vector<bool> pages_of(CacheFixture& fixture, const Tokens& chain, std::uint32_t group) {
  const CacheScope scope = fixture.everyone();
  std::vector<bool> pages;
  SearchWork work;
  NodeId at = scope.root();
  for (std::size_t done = 0; done + 4 <= chain.size(); done += 4) {
    const auto found =
        fixture.cache().tree().best_child(at, kPublic, std::span(chain).subspan(done, 4), work);
    if (!found || found->tokens_shared < 4) break;
    at = found->node;
    pages.push_back(fixture.cache().tree().page(at, group).has_value());
  }
  return pages;
}

TEST(Window, FirstBlockKeptIsThatOfTheOldestTokenTheNextQuerySees) {
  for (std::uint32_t window = 1; window < 20; ++window) {
    for (std::uint64_t tokens = 0; tokens < 60; ++tokens) {
      // The query at position `tokens` sees positions tokens - window + 1 to tokens.
      std::uint64_t oldest = tokens;
      while (oldest > 0 && tokens - (oldest - 1) < window) --oldest;
      EXPECT_EQ(memory::first_block_kept({window}, tokens, 4), oldest / 4)
          << "window " << window << ", tokens " << tokens;
    }
  }
  EXPECT_EQ(memory::first_block_kept({0}, 1'000'000, 4), 0u);
}

TEST(Window, ReleasesWhatLeftItAndThatIsReusableUntilEvicted) {
  CacheFixture fixture(with_groups(8, {{5}}));
  Sequence sequence = fixture.run(counting(1, 8));  // the next query, 8, sees 4 to 8
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 1u);
  EXPECT_EQ(fixture.matched(counting(1, 4) + tokens_of({90})), 4u) << "released, still there";
  fixture.feed(sequence, tokens_of({9}));
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 1u) << "query 9 sees 5, in block 1";
  fixture.feed(sequence, tokens_of({10, 11, 12}));
  EXPECT_EQ(fixture.cache().pool().blocks_idle(), 2u);
  fixture.cache().clear();
  fixture.cache().check();
  EXPECT_EQ(fixture.matched(counting(1, 4) + tokens_of({90})), 0u);
  EXPECT_EQ(fixture.matched(counting(1, 12) + tokens_of({90})), 12u)
      << "a hit needs the last W - 1 tokens only";
}

TEST(Window, AHitNeedsTheLastTokensBeforeItsEndOnly) {
  CacheFixture fixture(with_groups(16, {{0}, {5}}));
  Sequence sequence = fixture.run(counting(1, 16));
  fixture.cache().clear();  // window pages of blocks 0 to 2; the full ones are held
  fixture.cache().check();
  EXPECT_EQ(pages_of(fixture, counting(1, 16), 0), (std::vector<bool>{true, true, true, true}));
  EXPECT_EQ(pages_of(fixture, counting(1, 16), 1), (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(fixture.matched(counting(1, 17)), 16u);
  EXPECT_EQ(fixture.matched(counting(1, 14)), 0u) << "token 13 would need tokens 9 to 12";
  EXPECT_EQ(fixture.matched(counting(1, 12) + tokens_of({90, 91})), 0u);
  Sequence second = fixture.open(counting(1, 17));
  EXPECT_EQ(second.tokens_computed(), 16u);
  EXPECT_EQ(second.table(1)[3], sequence.table(1)[3]);
  EXPECT_EQ(fixture.cache().pool().references(second.table(1)[3]), 2u);
}

TEST(Window, AMatchEndsWhereEveryGroupFindsWhatItReads) {
  CacheFixture fixture(with_groups(32, {{0}, {3}, {9}}));
  // Blocks 0 to 5 of one chain; a second request computes 0 to 2 again after an eviction.
  Sequence sequence = fixture.run(counting(1, 24));
  fixture.cache().clear();
  EXPECT_EQ(pages_of(fixture, counting(1, 24), 1),
            (std::vector<bool>{false, false, false, false, false, true}));
  EXPECT_EQ(pages_of(fixture, counting(1, 24), 2),
            (std::vector<bool>{false, false, false, false, true, true}));
  EXPECT_EQ(fixture.matched(counting(1, 25)), 24u);
  EXPECT_EQ(fixture.matched(counting(1, 24)), 0u) << "inside block 5 the window of 9 reaches 3";
  EXPECT_EQ(fixture.matched(counting(1, 23)), 0u);
}

TEST(Window, SealingFillsMissingGroupsOfAnExistingNode) {
  CacheFixture fixture(with_groups(16, {{0}, {5}}));
  Sequence first = fixture.run(counting(1, 12));
  fixture.cache().clear();
  EXPECT_EQ(pages_of(fixture, counting(1, 12), 1), (std::vector<bool>{false, false, true}));
  const std::uint64_t joined = fixture.cache().stats().blocks_deduplicated;
  Sequence second = fixture.run(counting(1, 6));  // nothing usable: computed again
  EXPECT_EQ(pages_of(fixture, counting(1, 12), 1), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(fixture.cache().stats().blocks_deduplicated, joined + 1) << "the full page only";
  EXPECT_EQ(second.table(0)[0], first.table(0)[0]);
  EXPECT_EQ(fixture.matched(counting(1, 5)), 4u);
  fixture.feed(second, tokens_of({7, 8}));
  EXPECT_EQ(pages_of(fixture, counting(1, 12), 1), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(fixture.matched(counting(1, 9)), 8u);
}

TEST(Window, PagesGoAloneAndANodeGoesWithItsFullPage) {
  CacheFixture fixture(with_groups(4, {{0}, {2}}));
  fixture.serve(counting(1, 8));
  ASSERT_EQ(fixture.cache().pool().blocks_free(), 0u);
  Sequence pressure = fixture.open(counting(500, 4));
  ASSERT_TRUE(fixture.feed(pressure, tokens_of({500})));  // one page a group
  EXPECT_EQ(pages_of(fixture, counting(1, 8), 0), (std::vector<bool>{true}));
  EXPECT_EQ(pages_of(fixture, counting(1, 8), 1), (std::vector<bool>{false}))
      << "released first, when it left the window; then block 1 as a whole";
}

TEST(Window, WithLruTheTailGoesFirstAlsoWherePagesGoAlone) {
  CacheFixture fixture(with_groups(4, {{100}}));  // nothing leaves the window
  fixture.serve(counting(1, 16));
  Sequence pressure = fixture.open(tokens_of({500}));
  ASSERT_TRUE(fixture.feed(pressure, tokens_of({500})));
  EXPECT_EQ(pages_of(fixture, counting(1, 16), 0), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(fixture.matched(counting(1, 17)), 12u);
}

TEST(Window, ANodeWithoutPagesStaysWhileASequenceStandsOnIt) {
  CacheFixture fixture(with_groups(8, {{1}}));  // the next query sees itself only
  Sequence sequence = fixture.run(counting(1, 8));
  fixture.cache().clear();
  fixture.cache().check();
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 8u);
  EXPECT_EQ(fixture.cache().tree().nodes(), 3u);
  EXPECT_TRUE(fixture.feed(sequence, counting(9, 4)));
  fixture.cache().close(sequence);
  fixture.cache().clear();
  fixture.cache().check();
  EXPECT_EQ(fixture.cache().tree().nodes(), 1u);
}

TEST(Window, AForkHoldsWhatItsTwinHoldsAndNoMore) {
  CacheFixture fixture(with_groups(8, {{5}}));
  Sequence one = fixture.run(counting(1, 10));
  Sequence two = fixture.cache().fork(one);
  fixture.cache().close(one);
  fixture.cache().check();
  fixture.cache().clear();
  EXPECT_EQ(fixture.matched(counting(1, 11)), 10u);
  fixture.cache().close(two);
  fixture.cache().clear();
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 8u);
}

}  // namespace
}  // namespace pagoda::kv
