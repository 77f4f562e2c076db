// What is retained leaves last; who is over the quota loses first.
#include <gtest/gtest.h>

#include "kv/cache_fixture.h"

namespace pagoda::kv {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

CacheOptions retaining(std::uint32_t blocks, std::uint64_t budget) {
  CacheOptions options = CacheFixture::small(blocks);
  options.retain_blocks_max = budget;
  return options;
}

// Serves a prompt and asks for its first tokens to be kept.
Result<Retained> serve_and_retain(CacheFixture& fixture, const CacheScope& scope,
                                  const Tokens& prompt, const RetainTerms& terms) {
  Sequence sequence = fixture.run(scope, prompt);
  Result<Retained> outcome = fixture.cache().retain(sequence, terms);
  fixture.cache().check();
  fixture.cache().close(sequence);
  fixture.cache().check();
  return outcome;
}

TEST(Retention, WhatIsRetainedOutlivesWhatWasUsedSince) {
  for (const EvictionPolicy* const policy : eviction_policies()) {
    CacheOptions options = retaining(12, 4);
    options.policy = policy;
    CacheFixture fixture(options);
    const auto kept = serve_and_retain(fixture, fixture.everyone(), counting(1, 12),
                                       {.tokens = 11, .until_ns = kSecond, .priority = 1});
    ASSERT_TRUE(kept.ok()) << kept.error().message;
    EXPECT_EQ(kept.value().tokens, 8u) << "whole blocks";
    EXPECT_EQ(kept.value().blocks, 2u);
    for (std::uint32_t i = 0; i < 20; ++i) {
      fixture.serve(counting(1000 + 100 * i, 12));
      fixture.serve(counting(1000 + 100 * i, 12));
    }
    EXPECT_EQ(fixture.matched(counting(1, 13)), 8u) << policy->name;
  }
}

TEST(Retention, EndsOnItsOwn) {
  CacheFixture fixture(retaining(12, 4));
  ASSERT_TRUE(serve_and_retain(fixture, fixture.everyone(), counting(1, 12),
                               {.tokens = 8, .until_ns = 5 * kSecond, .priority = 1})
                  .ok());
  fixture.cache().advance_time(5 * kSecond - 1);
  EXPECT_EQ(fixture.cache().retention().blocks(), 2u);
  ASSERT_EQ(fixture.cache().retention().grants().size(), 1u);
  EXPECT_EQ(fixture.cache().retention().grants()[0].until_ns, 5 * kSecond);
  fixture.cache().advance_time(5 * kSecond);
  fixture.cache().check();
  EXPECT_EQ(fixture.cache().retention().blocks(), 0u);
  EXPECT_TRUE(fixture.cache().retention().grants().empty());
  EXPECT_EQ(fixture.matched(counting(1, 13)), 12u) << "what is let go stays until room is needed";
  for (std::uint32_t i = 0; i < 4; ++i) fixture.serve(counting(1000 + 100 * i, 12));
  EXPECT_EQ(fixture.matched(counting(1, 13)), 0u);
}

TEST(Retention, IsRefusedBeyondTheBudgetOfATenantAndThatOfAllWithTheReason) {
  CacheFixture fixture(retaining(12, 4));
  const RetainTerms terms = {.tokens = 12, .until_ns = kSecond, .priority = 1};
  ASSERT_TRUE(serve_and_retain(fixture, fixture.tenant("a"), counting(1, 12), terms).ok());
  const auto more = serve_and_retain(fixture, fixture.tenant("a"), counting(100, 12), terms);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(more.error().message, "3 blocks more, but the tenant keeps 3 of at most 4");
  EXPECT_EQ(fixture.cache().retention().blocks(), 3u) << "nothing is retained in part";
  ASSERT_TRUE(serve_and_retain(fixture, fixture.tenant("b"), counting(1, 12), terms).ok());
  const auto third = serve_and_retain(fixture, fixture.tenant("c"), counting(1, 12), terms);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().message, "all tenants together keep as much as is allowed, 6 blocks");
  const auto small = serve_and_retain(fixture, fixture.tenant("d"), counting(1, 3),
                                      {.tokens = 3, .until_ns = kSecond, .priority = 1});
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().message, "3 tokens are less than a block of 4");
  CacheFixture none(CacheFixture::small(12));
  EXPECT_EQ(serve_and_retain(none, none.everyone(), counting(1, 12), terms).error().message,
            "nothing is retained: the budget is 0");
}

TEST(Retention, IsClippedToTheBudgetWhereTheRequestAllowsIt) {
  CacheFixture fixture(retaining(24, 3));
  RetainTerms terms = {.tokens = 20, .until_ns = kSecond, .priority = 1};
  EXPECT_FALSE(serve_and_retain(fixture, fixture.everyone(), counting(1, 20), terms).ok());
  terms.may_clip = true;
  const auto clipped = serve_and_retain(fixture, fixture.everyone(), counting(1, 20), terms);
  ASSERT_TRUE(clipped.ok());
  EXPECT_EQ(clipped.value().tokens, 12u) << "three of five blocks";
  EXPECT_EQ(clipped.value().limit, "5 blocks more, but the tenant keeps 0 of at most 3");
  EXPECT_EQ(fixture.cache().retention().blocks(), 3u);
  for (std::uint32_t i = 0; i < 10; ++i) fixture.serve(counting(1000 + 100 * i, 20));
  EXPECT_EQ(fixture.matched(counting(1, 21)), 12u) << "the beginning is what stays";

  // Where nothing is left of the budget, nothing is granted; what is kept already costs nothing.
  const auto none = serve_and_retain(fixture, fixture.everyone(), counting(500, 8), terms);
  EXPECT_EQ(none.error().message, "2 blocks more, but the tenant keeps 3 of at most 3");
  const auto again = serve_and_retain(fixture, fixture.everyone(), counting(1, 12), terms);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().limit, "");
}

TEST(Retention, NeverHindersARequest) {
  CacheFixture fixture(retaining(8, 8));
  for (std::uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(serve_and_retain(fixture, fixture.everyone(), counting(100 * i, 8),
                                 {.tokens = 8, .until_ns = kSecond, .priority = 2 - i})
                    .ok());
  }
  EXPECT_EQ(fixture.cache().retention().blocks(), 4u);
  EXPECT_EQ(fixture.cache().blocks_available(), 8u);
  Sequence big = fixture.open(counting(500, 1));
  ASSERT_TRUE(fixture.feed(big, counting(500, 23))) << "six of eight blocks";
  EXPECT_EQ(fixture.matched(counting(0, 9)), 8u);
  EXPECT_EQ(fixture.matched(counting(100, 9)), 0u) << "of less priority, though used last";
  ASSERT_TRUE(fixture.feed(big, counting(600, 9))) << "all eight";
  EXPECT_EQ(fixture.cache().retention().blocks(), 0u);
}

TEST(Retention, OfAPublicBeginningIsTakenOverByWhoAsksForLonger) {
  CacheFixture fixture(retaining(16, 2));
  const Tokens system = counting(1, 8);
  ASSERT_TRUE(serve_and_retain(fixture, fixture.tenant("a", 8), system + counting(50, 4),
                               {.tokens = 8, .until_ns = 10 * kSecond, .priority = 5})
                  .ok());
  const auto shorter = serve_and_retain(fixture, fixture.tenant("b", 8), system + counting(60, 4),
                                        {.tokens = 8, .until_ns = 5 * kSecond, .priority = 5});
  ASSERT_TRUE(shorter.ok());
  EXPECT_EQ(shorter.value().blocks_charged, 0u) << "it is kept for longer already";
  const auto longer = serve_and_retain(fixture, fixture.tenant("b", 8), system + counting(60, 4),
                                       {.tokens = 8, .until_ns = 20 * kSecond, .priority = 5});
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(longer.value().blocks_charged, 2u);
  EXPECT_EQ(fixture.cache().retention().blocks(), 2u);
  EXPECT_TRUE(serve_and_retain(fixture, fixture.tenant("a", 8), counting(200, 8),
                               {.tokens = 8, .until_ns = 10 * kSecond, .priority = 5})
                  .ok())
      << "its budget is free again";
}

TEST(Retention, OfManyBlocksIsLetGoAFewAtACall) {
  CacheOptions options = retaining(1000, 500);
  options.block_tokens = 1;
  CacheFixture fixture(options);
  ASSERT_TRUE(serve_and_retain(fixture, fixture.everyone(), counting(1, 400),
                               {.tokens = 400, .until_ns = kSecond, .priority = 1})
                  .ok());
  std::uint64_t before = fixture.cache().retention().blocks();
  int calls = 0;
  while (before > 0) {
    fixture.cache().advance_time(2 * kSecond);
    fixture.cache().check();
    const std::uint64_t now = fixture.cache().retention().blocks();
    ASSERT_LT(now, before);
    ASSERT_LE(before - now, 64u);
    before = now;
    ++calls;
  }
  EXPECT_EQ(calls, 7);
}

TEST(Quota, WhoIsOverLosesBlocksFirstWhateverThePolicySays) {
  for (const EvictionPolicy* const policy : eviction_policies()) {
    CacheOptions options = CacheFixture::small(12);
    options.policy = policy;
    options.quota_blocks_private = 4;
    CacheFixture fixture(options);
    const CacheScope modest = fixture.tenant("modest");
    const CacheScope greedy = fixture.tenant("greedy");
    fixture.serve(modest, counting(1, 16));
    for (std::uint32_t i = 0; i < 30; ++i) {
      fixture.serve(greedy, counting(1000 + 100 * i, 16));
      fixture.serve(greedy, counting(1000 + 100 * i, 16));
    }
    EXPECT_EQ(fixture.matched(modest, counting(1, 17)), 16u) << policy->name;
    EXPECT_LE(fixture.cache().salts().blocks_charged(greedy.salt()), 8u);
  }
}

TEST(Quota, OfThePublicAccountKeepsItFromCrowdingOutTenants) {
  for (const std::uint64_t quota : {0u, 4u}) {
    CacheOptions options = CacheFixture::small(12);
    options.quota_blocks_public = quota;
    CacheFixture fixture(options);
    const CacheScope tenant = fixture.tenant("a");
    fixture.serve(tenant, counting(1, 16));
    for (std::uint32_t i = 0; i < 10; ++i) fixture.serve(counting(1000 + 100 * i, 16));
    EXPECT_EQ(fixture.matched(tenant, counting(1, 17)), quota == 0 ? 0u : 16u);
  }
}

TEST(Quota, IsNoLimitWhileThereIsRoom) {
  CacheOptions options = CacheFixture::small(12);
  options.quota_blocks_private = 2;
  CacheFixture fixture(options);
  fixture.serve(fixture.tenant("a"), counting(1, 40));
  EXPECT_EQ(fixture.matched(fixture.tenant("a"), counting(1, 41)), 40u);
}

// An account that marks short prompts takes no grant that another needs, and what is kept for
// longer already needs none.
TEST(Retention, AnAccountHasAsManyGrantsAsAreLeftForAll) {
  CacheOptions options = retaining(8192, 4000);
  Cache cache(options);  // the fixture would check it after every call
  const auto retain = [&](std::string_view salt, std::uint32_t number, std::int64_t until_ns) {
    const CacheScope scope = cache.scope("model", salt).value();
    const Tokens prompt = counting(10 * number, 4);
    auto opened = cache.open(scope, cache.match(scope, prompt), prompt);
    Sequence& sequence = std::get<Opened>(opened).sequence;
    for (const Copy& copy : std::get<Opened>(opened).copies) cache.copied(copy);
    const auto known = static_cast<std::ptrdiff_t>(sequence.tokens_computed());
    auto reserved = cache.reserve(sequence, prompt.size());
    for (const Copy& copy : std::get<std::vector<Copy>>(reserved)) cache.copied(copy);
    cache.commit(sequence, Tokens(prompt.begin() + known, prompt.end()));
    return cache.retain(sequence, {.tokens = 4, .until_ns = until_ns, .may_clip = true});
  };
  constexpr std::uint32_t kAlone = RetentionTable::kGrantsMax / 2;
  for (std::uint32_t i = 0; i < kAlone; ++i) {
    ASSERT_TRUE(retain("greedy", i, 100 * kSecond).ok()) << i;
  }
  const auto one_more = retain("greedy", kAlone, 100 * kSecond);
  ASSERT_FALSE(one_more.ok());
  EXPECT_EQ(one_more.error().code, ErrorCode::kExhausted);
  const auto shorter = retain("greedy", 0, kSecond);
  ASSERT_TRUE(shorter.ok()) << shorter.error().message;
  EXPECT_EQ(shorter.value().tokens, 4u);
  EXPECT_EQ(shorter.value().blocks_charged, 0u);
  for (std::uint32_t i = 0; i < kAlone / 2; ++i) {
    ASSERT_TRUE(retain("modest", i, 100 * kSecond).ok()) << i;
  }
  EXPECT_FALSE(retain("modest", kAlone, 100 * kSecond).ok());
  EXPECT_TRUE(retain("third", 0, 100 * kSecond).ok());
  cache.check();
}

}  // namespace
}  // namespace pagoda::kv
