// What the cache tells, one thing at a time; everything at once: cache_sim_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kv/cache_fixture.h"
#include "kv/events/event_mirror.h"

namespace pagoda::kv {
namespace {

struct Told {
  CacheEvent event;
  Tokens tokens;
};

class Listener {
 public:
  explicit Listener(std::uint64_t events = 256, bool tells_private_tokens = false)
      : ring_(events, 4, tells_private_tokens) {}

  CacheOptions options(std::uint32_t blocks) {
    CacheOptions options = CacheFixture::small(blocks);
    options.events = &ring_;
    return options;
  }
  std::vector<Told> hear() {
    std::vector<Told> told;
    ring_.publish();
    ring_.read(UINT64_MAX, [&](const CacheEvent& event, std::span<const TokenId> tokens) {
      told.push_back({event, Tokens(tokens.begin(), tokens.end())});
      mirror_.apply(event, tokens);
    });
    return told;
  }
  const EventMirror& mirror() const { return mirror_; }

 private:
  EventRing ring_;
  EventMirror mirror_;
};

std::vector<CacheEventKind> kinds(const std::vector<Told>& told) {
  std::vector<CacheEventKind> kinds;
  for (const Told& one : told) kinds.push_back(one.event.kind);
  return kinds;
}

std::vector<BlockHash> hashes_of(const Tokens& tokens, std::string_view salt = {}) {
  BlockHasher hasher;
  std::vector<BlockHash> names;
  EXPECT_TRUE(
      hash_chain(hasher, root_hash(), tokens, 4, {.adapter = {}, .salt = salt}, names).ok());
  return names;
}

TEST(CacheEvents, TellOfWholeBlocksWithHashParentAndTokens) {
  Listener listener;
  CacheFixture fixture(listener.options(8));
  fixture.serve(counting(1, 11));
  const std::vector<Told> told = listener.hear();
  const std::vector<BlockHash> names = hashes_of(counting(1, 8));
  ASSERT_EQ(kinds(told), std::vector<CacheEventKind>(2, CacheEventKind::kStored));
  EXPECT_EQ(told[0].event.hash, names[0]);
  EXPECT_EQ(told[0].event.parent, root_hash());
  EXPECT_EQ(told[0].tokens, counting(1, 4));
  EXPECT_EQ(told[1].event.hash, names[1]);
  EXPECT_EQ(told[1].event.parent, names[0]);
  EXPECT_EQ(told[1].tokens, counting(5, 4));
}

TEST(CacheEvents, AreNotToldAgainWhenABlockIsUsedAgain) {
  Listener listener;
  CacheFixture fixture(listener.options(16));
  fixture.serve(counting(1, 9));
  listener.hear();
  fixture.serve(counting(1, 9));
  EXPECT_TRUE(listener.hear().empty());
}

// Salt and tokens of a private block stay inside; its name is all that a router needs.
TEST(CacheEvents, KeepThePrivateThingsOfATenant) {
  Listener listener;
  CacheFixture fixture(listener.options(16));
  fixture.serve(fixture.tenant("secret", 4), counting(1, 12));
  const std::vector<Told> told = listener.hear();
  ASSERT_EQ(told.size(), 3u);
  EXPECT_TRUE(told[0].event.is_public);
  EXPECT_EQ(told[0].tokens, counting(1, 4));
  for (std::size_t i : {1, 2}) {
    EXPECT_FALSE(told[i].event.is_public);
    EXPECT_TRUE(told[i].tokens.empty());
  }
  BlockHasher hasher;
  const BlockHash first = hashes_of(counting(1, 4))[0];
  EXPECT_EQ(told[1].event.hash,
            hasher.hash(first, counting(5, 4), {.adapter = {}, .salt = "secret"}).value());
}

TEST(CacheEvents, TellTokensOfATenantWhereTheOperatorWantsIt) {
  Listener listener(256, true);
  CacheFixture fixture(listener.options(16));
  fixture.serve(fixture.tenant("secret", 4), counting(1, 12));
  const std::vector<Told> told = listener.hear();
  ASSERT_EQ(told.size(), 3u);
  EXPECT_TRUE(told[0].event.is_public);
  EXPECT_FALSE(told[1].event.is_public);
  EXPECT_EQ(told[1].tokens, counting(5, 4));
  EXPECT_EQ(told[2].tokens, counting(9, 4));
}

// A subscriber that hashes tokens by itself would find such a block for prompts of full context.
TEST(CacheEvents, KeepTheTokensOfABlockUnderAKvPolicy) {
  for (const bool tells_private_tokens : {false, true}) {
    Listener listener(256, tells_private_tokens);
    CacheFixture fixture(listener.options(16));
    const KvPolicy policy = {.window = 8};
    fixture.serve(fixture.cache().scope("model", {}, {}, kNoOwner, policy).value(), counting(1, 8));
    const std::vector<Told> told = listener.hear();
    ASSERT_EQ(told.size(), 2u);
    for (const Told& one : told) {
      EXPECT_FALSE(one.event.is_public);
      EXPECT_TRUE(one.tokens.empty());
    }
    EXPECT_NE(told[0].event.hash, hashes_of(counting(1, 4))[0]);
  }
}

TEST(CacheEvents, TellOfWhatIsEvicted) {
  Listener listener;
  CacheFixture fixture(listener.options(2));
  fixture.serve(counting(1, 8));
  listener.hear();
  fixture.serve(counting(100, 4));
  const std::vector<Told> told = listener.hear();
  const std::vector<BlockHash> names = hashes_of(counting(1, 8));
  ASSERT_EQ(kinds(told), (std::vector{CacheEventKind::kRemoved, CacheEventKind::kStored}));
  EXPECT_EQ(told[0].event.hash, names[1]) << "the tail leaves first";
  EXPECT_EQ(listener.mirror().difference(fixture.cache()), std::nullopt);
}

TEST(CacheEvents, AClearIsOneEventAndWhatIsHeldIsToldAgain) {
  Listener listener;
  CacheFixture fixture(listener.options(16));
  for (std::uint32_t i = 0; i < 3; ++i) fixture.serve(counting(100 * i, 8));
  const Sequence held = fixture.run(counting(1000, 8));
  listener.hear();
  fixture.cache().clear();
  const std::vector<Told> told = listener.hear();
  ASSERT_EQ(kinds(told), (std::vector{CacheEventKind::kCleared, CacheEventKind::kStored,
                                      CacheEventKind::kStored}));
  EXPECT_EQ(listener.mirror().difference(fixture.cache()), std::nullopt);
}

TEST(CacheEvents, APartOfASnapshotLooksAtNoMoreNodesThanAsked) {
  Listener listener;
  CacheFixture fixture(listener.options(64));
  fixture.serve(counting(1, 160));
  listener.hear();
  SnapshotCursor cursor;
  std::uint64_t present = 0;
  for (std::uint32_t parts = 0; !cursor.ended; ++parts) {
    ASSERT_LT(parts, 20u);
    fixture.cache().events().emit_snapshot(cursor, 5);
    const std::vector<Told> told = listener.hear();
    const std::vector<CacheEventKind> seen = kinds(told);
    const auto pages =
        static_cast<std::uint64_t>(std::count(seen.begin(), seen.end(), CacheEventKind::kPresent));
    EXPECT_LE(pages, 5u);
    present += pages;
    if (parts == 3) fixture.serve(counting(1000, 4));  // and the tree goes on
  }
  EXPECT_GE(present, 40u);
  EXPECT_EQ(listener.mirror().snapshots(), 1u);
  EXPECT_EQ(listener.mirror().contradiction(), std::nullopt);
  EXPECT_EQ(listener.mirror().difference(fixture.cache()), std::nullopt);
}

TEST(CacheEvents, AfterALossASnapshotGivesEverything) {
  Listener listener(4);
  CacheFixture fixture(listener.options(64));
  fixture.serve(counting(1, 80));
  listener.hear();
  ASSERT_FALSE(listener.mirror().knows());
  SnapshotCursor cursor;
  while (!cursor.ended) {
    fixture.cache().events().emit_snapshot(cursor,
                                           100);  // it goes no further than the ring has room
    listener.hear();
  }
  ASSERT_TRUE(listener.mirror().knows());
  EXPECT_EQ(listener.mirror().difference(fixture.cache()), std::nullopt);
}

}  // namespace
}  // namespace pagoda::kv
