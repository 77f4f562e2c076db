// Why a prompt missed, one reason at a time.
#include <gtest/gtest.h>

#include "kv/cache_fixture.h"
#include "kv/miss_counters.h"

namespace pagoda::kv {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

CacheOptions remembering(std::uint32_t blocks) {
  CacheOptions options = CacheFixture::small(blocks);
  options.eviction_records_max = 1000;
  return options;
}

// Explains, and holds what must be true of every explanation.
Explanation why(CacheFixture& fixture, const CacheScope& scope, const Tokens& prompt) {
  const Explanation told = fixture.explain(scope, prompt);
  EXPECT_EQ(told.prompt_tokens, prompt.size());
  EXPECT_EQ(told.tokens_matched, fixture.matched(scope, prompt));
  EXPECT_GE(told.tokens_reachable, told.stops_at());
  EXPECT_LT(told.tokens_reachable, prompt.size());
  return told;
}
Explanation why(CacheFixture& fixture, const Tokens& prompt) {
  return why(fixture, fixture.everyone(), prompt);
}

TEST(Explain, SaysNothingIsMissingWhenAllButTheLastTokenWasThere) {
  CacheFixture fixture(remembering(16));
  fixture.serve(counting(1, 10));
  EXPECT_EQ(why(fixture, counting(1, 10)).reason, MissReason::kNone);
  EXPECT_EQ(why(fixture, counting(1, 11)).reason, MissReason::kNone);
  EXPECT_EQ(why(fixture, counting(1, 12)).reason, MissReason::kNeverSeen) << "more than was there";
  EXPECT_EQ(why(fixture, counting(1, 1)).reason, MissReason::kTooShort);
}

TEST(Explain, SaysThatNothingIsShared) {
  CacheOptions options = remembering(16);
  options.share = false;
  CacheFixture fixture(options);
  fixture.serve(counting(1, 10));
  EXPECT_EQ(why(fixture, counting(1, 10)).reason, MissReason::kSharingOff);
}

TEST(Explain, ShowsWhatTheCacheHasWhereAPromptDiffers) {
  CacheFixture fixture(remembering(16));
  fixture.serve(counting(1, 12));
  for (const std::uint32_t at : {1u, 3u, 4u, 6u, 8u, 9u}) {
    const Explanation told = why(fixture, counting(1, at) + tokens_of({77, 78}));
    EXPECT_EQ(told.reason, MissReason::kDiffers) << at;
    EXPECT_EQ(told.stops_at(), at);
    EXPECT_EQ(told.stored, counting(1 + at, 12 - at));
  }
  EXPECT_EQ(why(fixture, tokens_of({77, 78})).reason, MissReason::kNeverSeen)
      << "nothing is shared";
}

// The public text ends where the prompt parts from my own.
TEST(Explain, LooksForADifferenceInBothRegionsThatTheLookupSees) {
  CacheFixture fixture(remembering(16));
  const Tokens trunk = counting(1, 4);
  Sequence mine = fixture.run(fixture.tenant("me", 4), trunk + tokens_of({10, 11, 99}));
  fixture.serve(trunk + tokens_of({10, 11}));
  const Tokens asked = trunk + tokens_of({10, 11, 12, 13});
  EXPECT_EQ(why(fixture, asked).reason, MissReason::kNeverSeen);
  const Explanation told = why(fixture, fixture.tenant("me", 4), asked);
  EXPECT_EQ(told.reason, MissReason::kDiffers);
  EXPECT_EQ(told.stored, tokens_of({99}));
}

TEST(Explain, KnowsWhenWhatIsGoneLeftAndForWhom) {
  CacheFixture fixture(remembering(4));
  fixture.cache().advance_time(1 * kSecond);
  fixture.serve(fixture.tenant("a"), counting(1, 12));
  fixture.cache().advance_time(5 * kSecond);
  fixture.serve(fixture.tenant("b"), counting(100, 12));
  const Explanation told = why(fixture, fixture.tenant("a"), counting(1, 12));
  EXPECT_EQ(told.reason, MissReason::kEvicted);
  EXPECT_EQ(told.tokens_matched, 4u) << "the head goes last";
  EXPECT_EQ(told.tokens_reachable, 11u);
  EXPECT_EQ(told.eviction, (Eviction{EvictionCause::kRoom, 5 * kSecond, 4 * kSecond, true}));
  fixture.cache().advance_time(6 * kSecond);
  fixture.serve(fixture.tenant("a"), counting(200, 16));
  EXPECT_EQ(why(fixture, fixture.tenant("a"), counting(1, 12)).eviction,
            (Eviction{EvictionCause::kRoom, 6 * kSecond, 5 * kSecond, false}))
      << "its head, for a request of its own";
  EXPECT_EQ(why(fixture, fixture.tenant("c"), counting(1, 12)).reason, MissReason::kNeverSeen);
}

TEST(Explain, KnowsAPromptThatLeftInsideABlockWithItsAnswer) {
  CacheFixture fixture(remembering(2));
  Sequence sequence = fixture.run(counting(1, 2));
  ASSERT_TRUE(fixture.feed(sequence, tokens_of({50, 51, 52})));
  fixture.cache().close(sequence);
  fixture.serve(counting(100, 8));
  EXPECT_EQ(why(fixture, counting(1, 2)).reason, MissReason::kEvicted);
  EXPECT_EQ(why(fixture, counting(1, 2) + tokens_of({7, 8})).tokens_reachable, 2u);
  EXPECT_EQ(why(fixture, counting(1, 2) + tokens_of({50, 51, 52, 9})).tokens_reachable, 5u);
  EXPECT_EQ(why(fixture, counting(1, 1) + tokens_of({7})).reason, MissReason::kNeverSeen);
}

TEST(Explain, SaysThatTheCacheWasReset) {
  CacheFixture fixture(remembering(16));
  fixture.serve(counting(1, 10));
  fixture.cache().advance_time(3 * kSecond);
  fixture.cache().clear();
  const Explanation told = why(fixture, counting(1, 10));
  EXPECT_EQ(told.reason, MissReason::kCleared);
  EXPECT_EQ(told.eviction, (Eviction{EvictionCause::kReset, 3 * kSecond, 3 * kSecond, false}));
}

// What left is known in the region it was of, whatever the client's own split.
TEST(Explain, KnowsWhatLeftOfThePublicRegionAndOfOnesOwn) {
  CacheFixture fixture(remembering(16));
  fixture.serve(counting(1, 8));
  fixture.serve(fixture.tenant("me"), counting(20, 8));
  fixture.cache().clear();
  for (const std::uint64_t public_tokens : {0, 4, 8, 12}) {
    const CacheScope me = fixture.tenant("me", public_tokens);
    EXPECT_EQ(why(fixture, me, counting(1, 9)).tokens_reachable, 8u) << "public, " << public_tokens;
    EXPECT_EQ(why(fixture, me, counting(20, 9)).tokens_reachable, 8u) << "mine, " << public_tokens;
    const CacheScope you = fixture.tenant("you", public_tokens);
    EXPECT_EQ(why(fixture, you, counting(1, 9)).reason, MissReason::kCleared);
    EXPECT_EQ(why(fixture, you, counting(20, 9)).reason, MissReason::kNeverSeen);
  }
}

TEST(Explain, SaysThatARegionHadMoreThanItsQuota) {
  CacheOptions options = remembering(8);
  options.quota_blocks_private = 2;
  CacheFixture fixture(options);
  fixture.serve(fixture.tenant("a"), counting(1, 16));
  fixture.serve(fixture.tenant("b"), counting(100, 20));
  const Explanation told = why(fixture, fixture.tenant("a"), counting(1, 16));
  EXPECT_EQ(told.reason, MissReason::kEvicted);
  EXPECT_EQ(told.eviction->cause, EvictionCause::kQuota);
}

TEST(Explain, SaysThatTheTimeOfWhatWasRetainedHadEnded) {
  CacheOptions options = remembering(4);
  options.retain_blocks_max = 2;
  CacheFixture fixture(options);
  Sequence sequence = fixture.run(counting(1, 8));
  ASSERT_TRUE(fixture.cache().retain(sequence, {.tokens = 8, .until_ns = kSecond}).ok());
  fixture.cache().close(sequence);
  fixture.cache().advance_time(2 * kSecond);
  fixture.serve(counting(100, 16));
  const Explanation told = why(fixture, counting(1, 8));
  EXPECT_EQ(told.reason, MissReason::kEvicted);
  EXPECT_EQ(told.eviction->cause, EvictionCause::kRetained);
  fixture.serve(counting(1, 8));
  fixture.serve(counting(200, 16));
  EXPECT_EQ(why(fixture, counting(1, 8)).eviction->cause, EvictionCause::kRoom) << "this time not";
}

TEST(Explain, NamesTheOtherAdapterFormatOrSaltOfTheSameOwner) {
  CacheFixture fixture(remembering(64));
  Cache& cache = fixture.cache();
  const auto as = [&](const char* space, const char* salt, const char* adapter, std::uint32_t who) {
    return cache.scope(space, salt, adapter, OwnerId(who)).value();
  };
  fixture.serve(as("model", "mine", "poems", 1), counting(1, 8));
  fixture.serve(as("fp16", "mine", "", 1), counting(20, 8));
  fixture.serve(as("model", "also mine", "", 1), counting(40, 8));
  const CacheScope me = as("model", "mine", "", 1);
  EXPECT_EQ(why(fixture, me, counting(1, 9)).reason, MissReason::kOtherAdapter);
  EXPECT_EQ(why(fixture, me, counting(20, 9)).reason, MissReason::kOtherFormat);
  EXPECT_EQ(why(fixture, me, counting(40, 9)).reason, MissReason::kOtherSalt);
  EXPECT_EQ(why(fixture, me, counting(40, 9)).tokens_reachable, 8u);
  EXPECT_EQ(why(fixture, as("model", "", "", 1), counting(40, 9)).reason, MissReason::kOtherSalt)
      << "also where nothing is private now";
  const CacheScope others[] = {as("model", "theirs", "", 2), as("model", "nobody's", "", 0)};
  for (const CacheScope& other : others) {
    for (const std::uint32_t first : {1u, 20u, 40u}) {
      EXPECT_EQ(why(fixture, other, counting(first, 9)).reason, MissReason::kNeverSeen);
    }
  }
}

TEST(Explain, OfTwoReasonsNamesTheOneThatCostMore) {
  CacheFixture fixture(remembering(6));
  const auto as = [&](const char* salt) {
    return fixture.cache().scope("model", salt, "", OwnerId(1)).value();
  };
  fixture.serve(as("a"), counting(1, 8));
  fixture.serve(as("b"), counting(1, 16));  // the room is a's
  fixture.serve(as("c"), counting(50, 8));
  const Explanation told = why(fixture, as("a"), counting(1, 16));
  EXPECT_EQ(told.reason, MissReason::kOtherSalt) << "what left reached 8 tokens";
  EXPECT_GT(told.tokens_reachable, 8u);
  EXPECT_FALSE(told.eviction.has_value());
}

// A window's page may go alone: the block is known and cannot be used.
TEST(Explain, KnowsAWindowsPageThatLeft) {
  CacheOptions options = remembering(12);
  options.groups = {{0}, {4}};
  CacheFixture fixture(options);
  fixture.serve(counting(1, 16));
  fixture.cache().advance_time(kSecond);
  Sequence other = fixture.run(counting(100, 16));
  bool found = false;
  for (std::uint32_t length = 3; length <= 17; ++length) {
    const Explanation told = why(fixture, counting(1, length));
    if (told.reason == MissReason::kNone) continue;
    EXPECT_EQ(told.reason, MissReason::kEvicted) << length;
    ASSERT_TRUE(told.eviction.has_value());
    EXPECT_EQ(told.eviction->left_ns, kSecond);
    found = true;
  }
  EXPECT_TRUE(found);
}

TEST(Explain, AdmitsWhatIsForgotten) {
  CacheOptions options = CacheFixture::small(2);
  options.eviction_records_max = 2;
  CacheFixture fixture(options);
  fixture.cache().advance_time(kSecond);
  fixture.serve(counting(1, 8));
  EXPECT_FALSE(why(fixture, counting(50, 8)).forgotten_until_ns.has_value());
  fixture.serve(counting(100, 8));
  EXPECT_EQ(why(fixture, counting(1, 8)).reason, MissReason::kEvicted);
  fixture.cache().advance_time(2 * kSecond);
  fixture.serve(counting(200, 8));
  const Explanation told = why(fixture, counting(1, 8));
  EXPECT_EQ(told.reason, MissReason::kNeverSeen);
  EXPECT_EQ(told.forgotten_until_ns, kSecond);
}

// A salt's number is used again; what its first tenant left behind is no business of the next.
TEST(Explain, ForgetsATenantWithItsSalt) {
  CacheFixture fixture(remembering(4));
  std::optional<CacheScope> a = fixture.tenant("a");
  const SaltId number = a->salt();
  fixture.serve(*a, counting(1, 12));
  a.reset();
  fixture.cache().clear();
  const CacheScope b = fixture.tenant("b");
  ASSERT_EQ(b.salt(), number);
  EXPECT_EQ(why(fixture, b, counting(1, 12)).reason, MissReason::kNeverSeen);
  EXPECT_EQ(why(fixture, fixture.tenant("a"), counting(1, 12)).reason, MissReason::kCleared);
}

TEST(Salts, OfAnOwnerAreListedNewestFirstWhileTheyLast) {
  SaltTable salts(7);
  const auto listed = [&](std::uint32_t owner) {
    std::string texts;
    salts.for_each_of(OwnerId(owner), [&](SaltId salt) {
      texts += salts.text(salt);
      return true;
    });
    return texts;
  };
  const SaltId a = salts.acquire("a", OwnerId(1));
  const SaltId b = salts.acquire("b", OwnerId(1));
  const SaltId c = salts.acquire("c", OwnerId(1));
  salts.acquire("x", OwnerId(2));
  salts.acquire("n");
  salts.acquire("", OwnerId(2));
  salts.acquire("b", OwnerId(2));  // it is the first one's
  EXPECT_EQ(listed(1), "cba");
  EXPECT_EQ(listed(2), "x");
  EXPECT_EQ(listed(0), "");
  salts.release(b);
  EXPECT_EQ(listed(1), "cba") << "someone still refers to it";
  salts.release(b);
  EXPECT_EQ(listed(1), "ca");
  salts.release(c);
  EXPECT_EQ(listed(1), "a");
  salts.release(a);
  EXPECT_EQ(listed(1), "");
  salts.acquire("d", OwnerId(1));
  EXPECT_EQ(listed(1), "d");
}

TEST(MissCounters, CountRequestsAndTheirMissingTokensByReason) {
  MissCounters counters;
  counters.add({.prompt_tokens = 100, .tokens_matched = 40, .reason = MissReason::kDiffers});
  counters.add({.prompt_tokens = 10, .tokens_matched = 9});
  counters.add({.prompt_tokens = 7,
                .reason = MissReason::kEvicted,
                .eviction = Eviction{.for_others = true}});
  EXPECT_EQ(counters[MissReason::kDiffers].requests, 1u);
  EXPECT_EQ(counters[MissReason::kDiffers].tokens, 60u);
  EXPECT_EQ(counters[MissReason::kNone].tokens, 1u);
  EXPECT_EQ(counters[MissReason::kEvicted].tokens, 7u);
  EXPECT_EQ(counters.requests_evicted_for_others, 1u);
}

}  // namespace
}  // namespace pagoda::kv
