// Slices that keep a window of tokens, beside slices that keep them all.
#include <gtest/gtest.h>

#include "kv/cache_desk.h"

namespace pagoda::kv {
namespace {

CacheOptions with_slices(std::uint32_t blocks, std::vector<memory::LayerReach> slices) {
  CacheOptions options = Desk::small(blocks);
  options.slices = std::move(slices);
  return options;
}

// Which blocks of a chain have a page in the slice.
std::vector<bool> pages_of(Desk& desk, const Tokens& chain, std::uint32_t slice) {
  const Domain domain = desk.everyone();
  std::vector<bool> pages;
  SearchWork work;
  NodeId at = domain.root();
  for (std::size_t done = 0; done + 4 <= chain.size(); done += 4) {
    const auto found =
        desk.cache().tree().best_child(at, kPublic, std::span(chain).subspan(done, 4), work);
    if (!found || found->tokens_shared < 4) break;
    at = found->node;
    pages.push_back(desk.cache().tree().page(at, slice).has_value());
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
  Desk desk(with_slices(8, {{5}}));
  Sequence sequence = desk.run(counting(1, 8));  // the next query, 8, sees 4 to 8
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 1u);
  EXPECT_EQ(desk.matched(counting(1, 4) + tokens_of({90})), 4u) << "released, still there";
  desk.feed(sequence, tokens_of({9}));
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 1u) << "query 9 sees 5, in block 1";
  desk.feed(sequence, tokens_of({10, 11, 12}));
  EXPECT_EQ(desk.cache().pool().blocks_idle(), 2u);
  desk.cache().clear();
  desk.cache().check();
  EXPECT_EQ(desk.matched(counting(1, 4) + tokens_of({90})), 0u);
  EXPECT_EQ(desk.matched(counting(1, 12) + tokens_of({90})), 12u)
      << "a hit needs the last W - 1 tokens only";
}

TEST(Window, AHitNeedsTheLastTokensBeforeItsEndOnly) {
  Desk desk(with_slices(16, {{0}, {5}}));
  Sequence sequence = desk.run(counting(1, 16));
  desk.cache().clear();  // window pages of blocks 0 to 2; the full ones are held
  desk.cache().check();
  EXPECT_EQ(pages_of(desk, counting(1, 16), 0), (std::vector<bool>{true, true, true, true}));
  EXPECT_EQ(pages_of(desk, counting(1, 16), 1), (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(desk.matched(counting(1, 17)), 16u);
  EXPECT_EQ(desk.matched(counting(1, 14)), 0u) << "token 13 would need tokens 9 to 12";
  EXPECT_EQ(desk.matched(counting(1, 12) + tokens_of({90, 91})), 0u);
  Sequence second = desk.open(counting(1, 17));
  EXPECT_EQ(second.tokens_computed(), 16u);
  EXPECT_EQ(second.table(1)[3], sequence.table(1)[3]);
  EXPECT_EQ(desk.cache().pool().references(second.table(1)[3]), 2u);
}

TEST(Window, AMatchEndsWhereEverySliceFindsWhatItReads) {
  Desk desk(with_slices(32, {{0}, {3}, {9}}));
  // Blocks 0 to 5 of one chain; a second request computes 0 to 2 again after an eviction.
  Sequence sequence = desk.run(counting(1, 24));
  desk.cache().clear();
  EXPECT_EQ(pages_of(desk, counting(1, 24), 1),
            (std::vector<bool>{false, false, false, false, false, true}));
  EXPECT_EQ(pages_of(desk, counting(1, 24), 2),
            (std::vector<bool>{false, false, false, false, true, true}));
  EXPECT_EQ(desk.matched(counting(1, 25)), 24u);
  EXPECT_EQ(desk.matched(counting(1, 24)), 0u) << "inside block 5 the window of 9 reaches 3";
  EXPECT_EQ(desk.matched(counting(1, 23)), 0u);
}

TEST(Window, SealingFillsMissingSlicesOfAnExistingNode) {
  Desk desk(with_slices(16, {{0}, {5}}));
  Sequence first = desk.run(counting(1, 12));
  desk.cache().clear();
  EXPECT_EQ(pages_of(desk, counting(1, 12), 1), (std::vector<bool>{false, false, true}));
  const std::uint64_t joined = desk.cache().blocks_joined();
  Sequence second = desk.run(counting(1, 6));  // nothing usable: computed again
  EXPECT_EQ(pages_of(desk, counting(1, 12), 1), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(desk.cache().blocks_joined(), joined + 1) << "the full page only";
  EXPECT_EQ(second.table(0)[0], first.table(0)[0]);
  EXPECT_EQ(desk.matched(counting(1, 5)), 4u);
  desk.feed(second, tokens_of({7, 8}));
  EXPECT_EQ(pages_of(desk, counting(1, 12), 1), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(desk.matched(counting(1, 9)), 8u);
}

TEST(Window, PagesGoAloneAndANodeGoesWithItsFullPage) {
  Desk desk(with_slices(4, {{0}, {2}}));
  desk.serve(counting(1, 8));
  ASSERT_EQ(desk.cache().pool().blocks_free(), 0u);
  Sequence pressure = desk.open(counting(500, 4));
  ASSERT_TRUE(desk.feed(pressure, tokens_of({500})));  // one page a slice
  EXPECT_EQ(pages_of(desk, counting(1, 8), 0), (std::vector<bool>{true}));
  EXPECT_EQ(pages_of(desk, counting(1, 8), 1), (std::vector<bool>{false}))
      << "released first, when it left the window; then block 1 as a whole";
}

TEST(Window, WithLruTheTailGoesFirstAlsoWherePagesGoAlone) {
  Desk desk(with_slices(4, {{100}}));  // nothing leaves the window
  desk.serve(counting(1, 16));
  Sequence pressure = desk.open(tokens_of({500}));
  ASSERT_TRUE(desk.feed(pressure, tokens_of({500})));
  EXPECT_EQ(pages_of(desk, counting(1, 16), 0), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(desk.matched(counting(1, 17)), 12u);
}

TEST(Window, ANodeWithoutPagesStaysWhileASequenceStandsOnIt) {
  Desk desk(with_slices(8, {{1}}));  // the next query sees itself only
  Sequence sequence = desk.run(counting(1, 8));
  desk.cache().clear();
  desk.cache().check();
  EXPECT_EQ(desk.cache().pool().blocks_free(), 8u);
  EXPECT_EQ(desk.cache().tree().nodes(), 3u);
  EXPECT_TRUE(desk.feed(sequence, counting(9, 4)));
  desk.cache().close(sequence);
  desk.cache().clear();
  desk.cache().check();
  EXPECT_EQ(desk.cache().tree().nodes(), 1u);
}

TEST(Window, AForkHoldsWhatItsTwinHoldsAndNoMore) {
  Desk desk(with_slices(8, {{5}}));
  Sequence one = desk.run(counting(1, 10));
  Sequence two = desk.cache().fork(one);
  desk.cache().close(one);
  desk.cache().check();
  desk.cache().clear();
  EXPECT_EQ(desk.matched(counting(1, 11)), 10u);
  desk.cache().close(two);
  desk.cache().clear();
  EXPECT_EQ(desk.cache().pool().blocks_free(), 8u);
}

}  // namespace
}  // namespace pagoda::kv
