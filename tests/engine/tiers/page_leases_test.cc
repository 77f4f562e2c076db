// Pages of the pool are leased by hash, never more than the share that leases may hold.
#include "engine/tiers/page_leases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "kv/cache_fixture.h"

namespace pagoda::engine {
namespace {

// Keeps what it was told.
class Lessee final : public kv::PageLessee {
 public:
  void take(std::vector<kv::LeasedPage> pages, std::vector<kv::BlockHash> blocks) override {
    taken = std::move(pages);
    prompt = std::move(blocks);
  }
  void revoke(std::optional<kv::OwnerTag> owner) override { revoked.push_back(owner); }

  std::vector<kv::LeasedPage> taken;
  std::vector<kv::BlockHash> prompt;
  std::vector<std::optional<kv::OwnerTag>> revoked;
};

kv::OwnerTag tag_of(kv::OwnerId owner) {
  kv::OwnerTag tag;
  tag.bytes[0] = static_cast<std::byte>(owner.value());
  return tag;
}

struct LeaseFixture {
  explicit LeaseFixture(std::uint32_t blocks, std::vector<kv::memory::AttentionSpec> groups = {{}})
      : caches(options_of(blocks, std::move(groups))), memory(blocks * 8) {
    tiers.lessee = &lessee;
    tiers.page_at = [this](kv::BlockId block) {
      return std::span(memory).subspan(block.value() * 8, 8);
    };
    tiers.owner_tag = tag_of;
    leases.set_space(space);
  }
  static kv::CacheOptions options_of(std::uint32_t blocks,
                                     std::vector<kv::memory::AttentionSpec> groups) {
    kv::CacheOptions options = kv::CacheFixture::small(blocks);
    options.hash_blocks = options.find_by_hash = true;
    options.groups = std::move(groups);
    return options;
  }

  kv::Cache& cache() { return caches.cache(); }
  std::vector<kv::NodeId> nodes_of(const kv::CacheScope& scope, const kv::Tokens& prompt) {
    return cache().match(scope, prompt).nodes;
  }
  std::vector<kv::PageKey> keys_of(const std::vector<kv::NodeId>& nodes) {
    std::vector<kv::PageKey> keys;
    for (const kv::NodeId node : nodes) keys.push_back({space, cache().hashes().of(node), 0});
    return keys;
  }
  static std::vector<kv::BlockId> blocks_of(const std::vector<kv::LeasedPage>& pages) {
    std::vector<kv::BlockId> blocks;
    for (const kv::LeasedPage& page : pages) blocks.push_back(page.block);
    return blocks;
  }

  kv::SpaceId space = kv::space_id("model");
  Lessee lessee;
  kv::CacheFixture caches;
  std::vector<std::byte> memory;
  TierOptions tiers;
  PageLeases leases{tiers, caches.cache()};
};

TEST(PageLeases, AreGivenByHashWithWhatTheCacheKnowsOfThem) {
  LeaseFixture fixture(40);
  fixture.caches.serve(kv::counting(1, 17));
  const auto nodes = fixture.nodes_of(fixture.caches.everyone(), kv::counting(1, 17));
  ASSERT_EQ(nodes.size(), 4u);
  const auto keys = fixture.keys_of(nodes);
  const auto pages = fixture.leases.lease(keys);
  ASSERT_EQ(pages.size(), 4u);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    EXPECT_EQ(pages[i].label.key, keys[i]);
    EXPECT_EQ(pages[i].label.parent, i == 0 ? kv::root_hash() : keys[i - 1].hash);
    EXPECT_EQ(pages[i].label.tokens, kv::counting(1 + 4 * static_cast<std::uint32_t>(i), 4));
    EXPECT_EQ(pages[i].label.owner, kv::OwnerTag{});
    EXPECT_EQ(pages[i].page.data(), fixture.memory.data() + 8 * pages[i].block.value());
    EXPECT_EQ(fixture.cache().pool().references(pages[i].block), 1u);
  }
  fixture.cache().clear();
  EXPECT_EQ(fixture.nodes_of(fixture.caches.everyone(), kv::counting(1, 17)).size(), 4u);
  fixture.leases.end(LeaseFixture::blocks_of(pages));
  EXPECT_EQ(fixture.leases.pages(), 0u);
  fixture.cache().clear();
  EXPECT_EQ(fixture.nodes_of(fixture.caches.everyone(), kv::counting(1, 17)).size(), 0u);
  EXPECT_TRUE(fixture.leases.lease(keys).empty());  // what left is not found by its old hash
}

TEST(PageLeases, EndAtTheFirstPageThatIsNotThere) {
  LeaseFixture fixture(40);
  fixture.caches.serve(kv::counting(1, 17));
  auto keys = fixture.keys_of(fixture.nodes_of(fixture.caches.everyone(), kv::counting(1, 17)));
  auto other = keys;
  other[2].hash.digest[0] ^= std::byte{1};
  EXPECT_EQ(fixture.leases.lease(other).size(), 2u);
  other = keys;
  other[1].space = kv::space_id("another model");
  EXPECT_EQ(fixture.leases.lease(other).size(), 1u);
  other = keys;
  other[0].group = 7;
  EXPECT_TRUE(fixture.leases.lease(other).empty());
  fixture.leases.drop_space();
  EXPECT_TRUE(fixture.leases.lease(keys).empty());
}

TEST(PageLeases, HoldNoMoreThanTheirShare) {
  LeaseFixture fixture(40);
  fixture.tiers.lease_share = 0.25;
  fixture.caches.serve(kv::counting(1, 81));
  const auto keys =
      fixture.keys_of(fixture.nodes_of(fixture.caches.everyone(), kv::counting(1, 81)));
  ASSERT_EQ(keys.size(), 20u);
  const auto first = fixture.leases.lease(keys);
  EXPECT_EQ(first.size(), 10u);
  // A page counts once, however often it is leased.
  const auto again = fixture.leases.lease(keys);
  EXPECT_EQ(again.size(), 10u);
  EXPECT_EQ(fixture.leases.pages(), 10u);
  fixture.leases.end(LeaseFixture::blocks_of(first));
  EXPECT_EQ(fixture.leases.pages(), 10u);
  fixture.leases.end(LeaseFixture::blocks_of(again));
  EXPECT_EQ(fixture.leases.pages(), 0u);
  fixture.tiers.lease_share = 0;
  EXPECT_TRUE(fixture.leases.lease(keys).empty());
}

TEST(PageLeases, OfAChangedModelAreNotGiven) {
  LeaseFixture fixture(40);
  fixture.caches.serve(kv::counting(1, 17));
  const auto keys =
      fixture.keys_of(fixture.nodes_of(fixture.caches.everyone(), kv::counting(1, 17)));
  fixture.tiers.is_model_unchanged = [] { return false; };
  EXPECT_TRUE(fixture.leases.lease(keys).empty());
}

TEST(PageLeases, ATenantsPagesNameItAndEndWhenItIsRemoved) {
  LeaseFixture fixture(40);
  const kv::OwnerId owner(3);
  kv::CacheScope scope = fixture.cache().scope("model", "salt of 3", {}, owner).value();
  {
    kv::Sequence sequence = fixture.caches.open(scope, kv::counting(1, 17));
    ASSERT_TRUE(fixture.caches.feed(sequence, kv::counting(1, 17)));
    fixture.cache().close(sequence);
  }
  const auto keys = fixture.keys_of(fixture.nodes_of(scope, kv::counting(1, 17)));
  ASSERT_EQ(keys.size(), 4u);
  const auto pages = fixture.leases.lease(keys);
  ASSERT_EQ(pages.size(), 4u);
  EXPECT_EQ(pages[0].label.owner, tag_of(owner));
  EXPECT_TRUE(fixture.leases.has_leased(owner));
  EXPECT_FALSE(fixture.leases.has_leased(kv::OwnerId(4)));
  fixture.cache().retire(owner);
  fixture.leases.revoke(owner);
  ASSERT_EQ(fixture.lessee.revoked.size(), 1u);
  EXPECT_EQ(fixture.lessee.revoked[0], tag_of(owner));
  EXPECT_TRUE(fixture.leases.lease(keys).empty());  // nobody gets what is being removed
  fixture.leases.end(LeaseFixture::blocks_of(pages));
  EXPECT_FALSE(fixture.leases.has_leased(owner));
}

TEST(PageLeases, MakeWayForRequestsThatWaitForRoom) {
  LeaseFixture fixture(40);
  fixture.caches.serve(kv::counting(1, 17));
  const auto keys =
      fixture.keys_of(fixture.nodes_of(fixture.caches.everyone(), kv::counting(1, 17)));
  fixture.leases.poll(true);
  EXPECT_TRUE(fixture.lessee.revoked.empty());
  const auto pages = fixture.leases.lease(keys);
  fixture.leases.poll(false);
  EXPECT_TRUE(fixture.lessee.revoked.empty());
  fixture.leases.poll(true);
  fixture.leases.poll(true);
  ASSERT_EQ(fixture.lessee.revoked.size(), 1u);  // asked once
  EXPECT_EQ(fixture.lessee.revoked[0], std::nullopt);
  fixture.leases.end(LeaseFixture::blocks_of(pages));
}

TEST(PageLeases, APromptThatIsHandedOverIsLeasedAsFarAsItsEndIsOfUse) {
  LeaseFixture fixture(60, {{0}, {6}});
  fixture.tiers.lease_share = 1;
  fixture.caches.serve(kv::counting(1, 41));
  const auto nodes = fixture.nodes_of(fixture.caches.everyone(), kv::counting(1, 41));
  ASSERT_EQ(nodes.size(), 10u);
  std::vector<kv::BlockHash> hashes;
  for (const kv::NodeId node : nodes) hashes.push_back(fixture.cache().hashes().of(node));
  const std::vector<kv::memory::AttentionSpec> groups = {{0}, {6}};
  EXPECT_EQ(fixture.leases.hand_over(nodes, hashes, groups), 10u);
  // All pages of the full group; of the window those that hold the five tokens before the 41st, and
  // those before the 37th, where a prompt of 40 tokens is looked for.
  std::size_t of_windows = 0;
  for (const kv::LeasedPage& page : fixture.lessee.taken) of_windows += page.label.key.group;
  EXPECT_EQ(fixture.lessee.taken.size(), 13u);
  EXPECT_EQ(of_windows, 3u);
  fixture.leases.end(LeaseFixture::blocks_of(fixture.lessee.taken));
  // Windows behind an earlier end would need other pages: nothing is handed over.
  fixture.lessee.taken.clear();
  fixture.tiers.lease_share = 5.0 / 60;
  fixture.lessee.prompt.clear();
  EXPECT_EQ(fixture.leases.hand_over(nodes, hashes, groups), 0u);
  EXPECT_TRUE(fixture.lessee.taken.empty());
  EXPECT_EQ(fixture.lessee.prompt, hashes) << "who waits for the prompt is told all the same";
  EXPECT_EQ(fixture.leases.pages(), 0u);
}

}  // namespace
}  // namespace pagoda::engine
