// What one owner has: counted together, and cleared alone.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/random.h"
#include "kv/cache_fixture.h"

namespace pagoda::kv {
namespace {

constexpr OwnerId kAnna(1);
constexpr OwnerId kBert(2);

CacheScope owned(CacheFixture& fixture, std::string_view salt, OwnerId owner,
                 std::uint64_t public_tokens = 0) {
  CacheScope scope = fixture.cache().scope("model", salt, {}, owner).value();
  scope.public_tokens = public_tokens;
  return scope;
}

void clear(CacheFixture& fixture, OwnerId owner) {
  fixture.cache().clear(owner);
  fixture.cache().check();
}

TEST(ClearOwner, TakesAllItsSaltsAndNobodyElses) {
  CacheFixture fixture(CacheFixture::small(64));
  const Tokens prompt = counting(1, 12);
  for (const char* const salt : {"anna 1", "anna 2"})
    fixture.serve(owned(fixture, salt, kAnna), prompt);
  fixture.serve(owned(fixture, "bert", kBert), prompt);
  fixture.serve(fixture.everyone(), counting(50, 8));
  clear(fixture, kAnna);
  EXPECT_EQ(fixture.matched(owned(fixture, "anna 1", kAnna), counting(1, 13)), 0u);
  EXPECT_EQ(fixture.matched(owned(fixture, "anna 2", kAnna), counting(1, 13)), 0u);
  EXPECT_EQ(fixture.matched(owned(fixture, "bert", kBert), counting(1, 13)), 12u);
  EXPECT_EQ(fixture.matched(fixture.everyone(), counting(50, 9)), 8u);
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 64u - 3u - 2u);
}

TEST(ClearOwner, LeavesWhatItPublishedAndWhatItsRequestsHold) {
  CacheFixture fixture(CacheFixture::small(64));
  fixture.serve(owned(fixture, "anna", kAnna, 4), counting(1, 8));
  Sequence running = fixture.run(owned(fixture, "anna", kAnna), counting(100, 8));
  clear(fixture, kAnna);
  EXPECT_EQ(fixture.matched(owned(fixture, "bert", kBert), counting(1, 9)), 4u);
  EXPECT_EQ(fixture.matched(owned(fixture, "anna", kAnna), counting(1, 9)), 4u);
  EXPECT_EQ(fixture.matched(owned(fixture, "anna", kAnna), counting(100, 9)), 8u);
  fixture.cache().close(running);
  clear(fixture, kAnna);
  EXPECT_EQ(fixture.matched(owned(fixture, "anna", kAnna), counting(100, 9)), 0u);
}

TEST(ClearOwner, TakesWhatWasRetained) {
  CacheOptions options = CacheFixture::small(32);
  options.retain_blocks_max = 8;
  CacheFixture fixture(options);
  for (const auto& [salt, owner] : {std::pair{"anna", kAnna}, std::pair{"bert", kBert}}) {
    Sequence sequence = fixture.run(owned(fixture, salt, owner), counting(1, 8));
    ASSERT_TRUE(fixture.cache().retain(sequence, {.tokens = 8, .until_ns = 1'000'000}).ok());
    fixture.cache().close(sequence);
  }
  clear(fixture, kAnna);
  EXPECT_EQ(fixture.cache().retention().blocks(), 2u);
  EXPECT_EQ(fixture.matched(owned(fixture, "anna", kAnna), counting(1, 9)), 0u);
  EXPECT_EQ(fixture.matched(owned(fixture, "bert", kBert), counting(1, 9)), 8u);
}

TEST(OwnersAccount, HasOneQuotaAndOneBudgetHoweverManySaltsThereAre) {
  CacheOptions options = CacheFixture::small(32);
  options.quota_blocks_private = 4;
  options.retain_blocks_max = 3;
  CacheFixture fixture(options);
  fixture.serve(owned(fixture, "bert", kBert), counting(1, 16));
  std::uint64_t retained = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {  // a block of 4 tokens each, under a salt of its own
    Sequence sequence =
        fixture.run(owned(fixture, "anna " + std::to_string(i), kAnna), counting(100 * i, 4));
    const RetainTerms terms = {.tokens = 4, .until_ns = 1'000'000};
    retained += fixture.cache().retain(sequence, terms).ok() ? 1 : 0;
    fixture.cache().close(sequence);
  }
  EXPECT_EQ(retained, 3u);
  fixture.serve(owned(fixture, "bert", kBert), counting(5000, 60));  // room is needed
  const auto blocks_of_anna = [&] {
    std::uint64_t blocks = 0;
    for (std::uint32_t i = 0; i < 20; ++i) {
      const CacheScope scope = owned(fixture, "anna " + std::to_string(i), kAnna);
      blocks += fixture.matched(scope, counting(100 * i, 5)) / 4;
    }
    return blocks;
  };
  EXPECT_EQ(blocks_of_anna(), 13u) << "8 were free: the 7 others that were needed are hers";
  EXPECT_EQ(fixture.matched(owned(fixture, "bert", kBert), counting(1, 17)), 16u);
  fixture.cache().clear();
  fixture.cache().advance_time(2'000'000);
  fixture.cache().clear();
  fixture.cache().check();
}

TEST(OwnersAccount, EndsWithItsLastSaltAndASaltOfNobodyHasItsOwn) {
  SaltTable salts;
  const SaltId a = salts.acquire("a", kAnna);
  const SaltId b = salts.acquire("b", kAnna);
  const SaltId c = salts.acquire("c", kBert);
  const SaltId d = salts.acquire("d");
  const SaltId e = salts.acquire("e");
  EXPECT_EQ(salts.account(a), salts.account(b));
  const std::set<AccountId> different = {kPublicAccount, salts.account(a), salts.account(c),
                                         salts.account(d), salts.account(e)};
  EXPECT_EQ(different.size(), 5u);
  salts.charge(a);
  salts.charge(b);
  EXPECT_EQ(salts.blocks_charged(salts.account(a)), 2u);
  salts.discharge(a);
  salts.release(a);
  EXPECT_EQ(salts.blocks_charged(salts.account(b)), 1u);
  salts.discharge(b);
  salts.release(b);
  const std::size_t numbers = salts.account_numbers();
  salts.acquire("f", kAnna);
  EXPECT_EQ(salts.account_numbers(), numbers) << "the number is used again";
}

// Many trees at once, under every kind of queue, with windows, and with what runs meanwhile.
TEST(ClearOwner, ChangesNoMatchOfOthersWhateverThereIs) {
  const std::vector<const EvictionPolicy*> policies = {
      &lru_policy(), &s3fifo_policy(), &arc_policy(), &cost_policy(), &continuation_policy()};
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::uint64_t drawn = 0;
    const auto below = [&](std::size_t limit) {
      return static_cast<std::uint32_t>(random_bits(seed, 0, drawn++) % limit);
    };
    CacheOptions options = CacheFixture::small(96);
    options.policy = policies[seed % policies.size()];
    if (seed % 2 == 1) options.groups = {{0}, {6}};
    if (seed % 3 == 1) options.quota_blocks_private = 20;
    if (seed % 4 == 1) options.retain_blocks_max = 12;
    CacheFixture fixture(options);
    const std::vector<std::pair<std::string, OwnerId>> salts = {
        {"a1", kAnna}, {"a2", kAnna}, {"b1", kBert}, {"", OwnerId(0)}};
    std::vector<Tokens> prompts;
    for (int i = 0; i < 24; ++i) {
      const std::uint32_t trunk = below(3);
      const std::uint32_t length = 2 + below(18);
      prompts.push_back(counting(100 * trunk, 6) + counting(1000 + below(4), length));
      const auto& [salt, owner] = salts[below(salts.size())];
      fixture.serve(owned(fixture, salt, owner), prompts.back());
    }
    const auto matches = [&] {
      std::vector<std::vector<std::uint64_t>> found(salts.size());
      for (std::size_t s = 0; s < salts.size(); ++s) {
        const CacheScope scope = owned(fixture, salts[s].first, salts[s].second);
        for (const Tokens& prompt : prompts) found[s].push_back(fixture.matched(scope, prompt));
      }
      return found;
    };
    const auto before = matches();
    clear(fixture, kAnna);
    const auto after = matches();
    EXPECT_EQ(after[2], before[2]) << "seed " << seed;
    EXPECT_EQ(after[3], before[3]) << "seed " << seed;
    EXPECT_EQ(after[0], before[3]) << "only what is public is left, seed " << seed;
    EXPECT_EQ(after[1], before[3]) << "seed " << seed;
    for (const Tokens& prompt : prompts) fixture.serve(owned(fixture, "b1", kBert), prompt);
    fixture.cache().clear();
    fixture.cache().check();
    EXPECT_EQ(fixture.cache().pool().blocks_free(), 96u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace pagoda::kv
