// What the cache knows to follow a sequence's tokens: within its own scope, and unnoticed.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "kv/cache_fixture.h"
#include "kv/cache_snapshot.h"

namespace pagoda::kv {
namespace {

struct Continued {
  Tokens tokens;
  SearchWork work;
};

// Opens a sequence with all tokens but the last computed, and asks what follows them.
Continued continue_from(CacheFixture& fixture, const CacheScope& scope, const Tokens& tokens,
                        std::size_t room = 32) {
  Sequence sequence = fixture.open(scope, tokens);
  const std::uint64_t computed = sequence.tokens_computed();
  const Tokens rest(tokens.begin() + static_cast<std::ptrdiff_t>(computed), tokens.end() - 1);
  EXPECT_TRUE(rest.empty() || fixture.feed(sequence, rest));
  std::array<TokenId, 64> written;
  Continued found;
  const std::size_t count =
      fixture.cache().lookup().continuation(sequence.lookup_scope(), sequence.last_node(), tokens,
                                            std::span(written).first(room), found.work);
  found.tokens.assign(written.begin(), written.begin() + static_cast<std::ptrdiff_t>(count));
  return found;
}

TEST(Continuation, IsWhatAnEarlierSequenceHadBehindTheSameTokens) {
  for (std::uint32_t have = 1; have <= 22; ++have) {
    CacheFixture fixture(CacheFixture::small(64));
    fixture.serve(fixture.everyone(), counting(1, 22));
    const Continued found = continue_from(fixture, fixture.everyone(), counting(1, have));
    EXPECT_EQ(found.tokens, counting(have + 1, 22 - have)) << have;
    const Continued short_one = continue_from(fixture, fixture.everyone(), counting(1, have), 3);
    EXPECT_EQ(short_one.tokens, counting(have + 1, std::min(3u, 22 - have))) << have;
  }
}

TEST(Continuation, IsNothingWhereTheTokensPart) {
  CacheFixture fixture(CacheFixture::small(64));
  fixture.serve(fixture.everyone(), counting(1, 22));
  for (const std::uint32_t have : {1u, 3u, 4u, 5u, 8u, 12u}) {
    const Tokens other = counting(1, have) + tokens_of({77});
    EXPECT_TRUE(continue_from(fixture, fixture.everyone(), other).tokens.empty()) << have;
  }
}

TEST(Continuation, IsNothingWithoutSharing) {
  CacheOptions options = CacheFixture::small(64);
  options.share = false;
  CacheFixture fixture(options);
  fixture.serve(fixture.everyone(), counting(1, 22));
  EXPECT_TRUE(continue_from(fixture, fixture.everyone(), counting(1, 9)).tokens.empty());
}

// Another tenant's blocks change neither drafts nor the nodes visited and tokens compared.
TEST(Continuation, AnotherTenantsBlocksChangeNeitherItNorTheWork) {
  for (const std::uint64_t public_tokens : {std::uint64_t{0}, std::uint64_t{8}}) {
    const auto ask = [&](bool others) {
      CacheFixture fixture(CacheFixture::small(256));
      fixture.serve(fixture.everyone(), counting(1, 8));
      fixture.serve(fixture.tenant("mine", public_tokens), counting(1, 14));
      for (std::uint32_t i = 0; others && i < 12; ++i) {
        const std::string salt = "other " + std::to_string(i % 3);
        const Tokens text = counting(1, 8 + i % 5) + counting(100 + i * 9, 9);
        fixture.serve(fixture.tenant(salt, public_tokens), text);
      }
      return continue_from(fixture, fixture.tenant("mine", public_tokens), counting(1, 10));
    };
    const Continued alone = ask(false);
    const Continued beside = ask(true);
    EXPECT_EQ(alone.tokens, counting(11, 4));
    EXPECT_EQ(beside.tokens, alone.tokens);
    EXPECT_EQ(beside.work.nodes_visited, alone.work.nodes_visited);
    EXPECT_EQ(beside.work.tokens_compared, alone.work.tokens_compared);
  }
}

TEST(Continuation, OfAnotherTenantIsNotFound) {
  CacheFixture fixture(CacheFixture::small(64));
  fixture.serve(fixture.everyone(), counting(1, 8));
  fixture.serve(fixture.tenant("other"), counting(1, 20));
  EXPECT_TRUE(continue_from(fixture, fixture.tenant("mine"), counting(1, 9)).tokens.empty());
  EXPECT_TRUE(continue_from(fixture, fixture.everyone(), counting(1, 9)).tokens.empty());
  EXPECT_EQ(continue_from(fixture, fixture.tenant("other"), counting(1, 9)).tokens,
            counting(10, 11));
}

// Whoever asks leaves the order of eviction as it was.
TEST(Continuation, IsAskedUnnoticed) {
  const auto evicted_first = [&](bool asks) {
    CacheFixture fixture(CacheFixture::small(16));
    fixture.serve(fixture.everyone(), counting(1, 12));
    fixture.serve(fixture.everyone(), counting(200, 12));
    Sequence sequence = fixture.open(fixture.everyone(), counting(1, 5));
    for (int i = 0; asks && i < 100; ++i) {
      std::array<TokenId, 32> written;
      SearchWork work;
      fixture.cache().lookup().continuation(sequence.lookup_scope(), sequence.last_node(),
                                            counting(1, 5), written, work);
    }
    fixture.cache().close(sequence);
    std::vector<std::uint32_t> order;
    for (const NodeId node : fixture.cache().eviction_candidates(8)) {
      order.push_back(fixture.cache().tree().tokens(node).front().value());
    }
    return order;
  };
  EXPECT_EQ(evicted_first(true), evicted_first(false));
}

TEST(UnwrittenBlocks, AreFreeAgainAndWhatWasCommittedStays) {
  CacheFixture fixture(CacheFixture::small(16));
  Sequence sequence = fixture.open(counting(1, 6));
  ASSERT_TRUE(fixture.feed(sequence, counting(1, 6)));
  const std::uint64_t free = fixture.cache().pool().blocks_free();
  ASSERT_TRUE(std::holds_alternative<std::vector<Copy>>(fixture.cache().reserve(sequence, 15)));
  EXPECT_EQ(fixture.cache().pool().blocks_free(), free - 2);
  fixture.cache().release_unwritten(sequence);
  fixture.cache().check();
  EXPECT_EQ(fixture.cache().pool().blocks_free(), free);
  EXPECT_EQ(sequence.tokens_reserved(), 8u);
  ASSERT_TRUE(fixture.feed(sequence, counting(7, 6)));
  EXPECT_EQ(fixture.matched(counting(1, 13)), 12u);
}

}  // namespace
}  // namespace pagoda::kv
