// Why a prompt missed, one reason at a time.
#include <gtest/gtest.h>

#include "kv/cache_desk.h"
#include "kv/miss_counters.h"

namespace pagoda::kv {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

CacheOptions remembering(std::uint32_t blocks) {
  CacheOptions options = Desk::small(blocks);
  options.departures_max = 1000;
  return options;
}

// Explains, and holds what must be true of every explanation.
Explanation why(Desk& desk, const Domain& domain, const Tokens& prompt) {
  const Explanation told = desk.cache().explain(domain, prompt);
  EXPECT_EQ(told.prompt_tokens, prompt.size());
  EXPECT_EQ(told.tokens_matched, desk.matched(domain, prompt));
  EXPECT_GE(told.tokens_reachable, told.stops_at());
  EXPECT_LT(told.tokens_reachable, prompt.size());
  return told;
}
Explanation why(Desk& desk, const Tokens& prompt) { return why(desk, desk.everyone(), prompt); }

TEST(Explain, SaysNothingIsMissingWhenAllButTheLastTokenWasThere) {
  Desk desk(remembering(16));
  desk.serve(counting(1, 10));
  EXPECT_EQ(why(desk, counting(1, 10)).reason, MissReason::kNone);
  EXPECT_EQ(why(desk, counting(1, 11)).reason, MissReason::kNone);
  EXPECT_EQ(why(desk, counting(1, 12)).reason, MissReason::kNeverSeen) << "more than was there";
  EXPECT_EQ(why(desk, counting(1, 1)).reason, MissReason::kTooShort);
}

TEST(Explain, SaysThatNothingIsShared) {
  CacheOptions options = remembering(16);
  options.share = false;
  Desk desk(options);
  desk.serve(counting(1, 10));
  EXPECT_EQ(why(desk, counting(1, 10)).reason, MissReason::kSharingOff);
}

TEST(Explain, ShowsWhatTheCacheHasWhereAPromptDiffers) {
  Desk desk(remembering(16));
  desk.serve(counting(1, 12));
  for (const std::uint32_t at : {1u, 3u, 4u, 6u, 8u, 9u}) {
    const Explanation told = why(desk, counting(1, at) + tokens_of({77, 78}));
    EXPECT_EQ(told.reason, MissReason::kDiffers) << at;
    EXPECT_EQ(told.stops_at(), at);
    EXPECT_EQ(told.stored, counting(1 + at, 12 - at));
  }
  EXPECT_EQ(why(desk, tokens_of({77, 78})).reason, MissReason::kNeverSeen) << "nothing is shared";
}

// The public text ends where the prompt parts from my own.
TEST(Explain, LooksForADifferenceInBothRegionsThatTheAskerSees) {
  Desk desk(remembering(16));
  const Tokens trunk = counting(1, 4);
  Sequence mine = desk.run(desk.tenant("me", 4), trunk + tokens_of({10, 11, 99}));
  desk.serve(trunk + tokens_of({10, 11}));
  const Tokens asked = trunk + tokens_of({10, 11, 12, 13});
  EXPECT_EQ(why(desk, asked).reason, MissReason::kNeverSeen);
  const Explanation told = why(desk, desk.tenant("me", 4), asked);
  EXPECT_EQ(told.reason, MissReason::kDiffers);
  EXPECT_EQ(told.stored, tokens_of({99}));
}

TEST(Explain, KnowsWhenWhatIsGoneLeftAndForWhom) {
  Desk desk(remembering(4));
  desk.cache().advance_time(1 * kSecond);
  desk.serve(desk.tenant("a"), counting(1, 12));
  desk.cache().advance_time(5 * kSecond);
  desk.serve(desk.tenant("b"), counting(100, 12));
  const Explanation told = why(desk, desk.tenant("a"), counting(1, 12));
  EXPECT_EQ(told.reason, MissReason::kEvicted);
  EXPECT_EQ(told.tokens_matched, 4u) << "the head goes last";
  EXPECT_EQ(told.tokens_reachable, 11u);
  EXPECT_EQ(told.eviction, (Eviction{EvictionCause::kRoom, 5 * kSecond, 4 * kSecond, true}));
  desk.cache().advance_time(6 * kSecond);
  desk.serve(desk.tenant("a"), counting(200, 16));
  EXPECT_EQ(why(desk, desk.tenant("a"), counting(1, 12)).eviction,
            (Eviction{EvictionCause::kRoom, 6 * kSecond, 5 * kSecond, false}))
      << "its head, for a request of its own";
  EXPECT_EQ(why(desk, desk.tenant("c"), counting(1, 12)).reason, MissReason::kNeverSeen);
}

TEST(Explain, KnowsAPromptThatLeftInsideABlockWithItsAnswer) {
  Desk desk(remembering(2));
  Sequence sequence = desk.run(counting(1, 2));
  ASSERT_TRUE(desk.feed(sequence, tokens_of({50, 51, 52})));
  desk.cache().close(sequence);
  desk.serve(counting(100, 8));
  EXPECT_EQ(why(desk, counting(1, 2)).reason, MissReason::kEvicted);
  EXPECT_EQ(why(desk, counting(1, 2) + tokens_of({7, 8})).tokens_reachable, 2u);
  EXPECT_EQ(why(desk, counting(1, 2) + tokens_of({50, 51, 52, 9})).tokens_reachable, 5u);
  EXPECT_EQ(why(desk, counting(1, 1) + tokens_of({7})).reason, MissReason::kNeverSeen);
}

TEST(Explain, SaysThatTheCacheWasReset) {
  Desk desk(remembering(16));
  desk.serve(counting(1, 10));
  desk.cache().advance_time(3 * kSecond);
  desk.cache().clear();
  const Explanation told = why(desk, counting(1, 10));
  EXPECT_EQ(told.reason, MissReason::kCleared);
  EXPECT_EQ(told.eviction, (Eviction{EvictionCause::kReset, 3 * kSecond, 3 * kSecond, false}));
}

// What left is known in the region it was of, whatever the asker's own split.
TEST(Explain, KnowsWhatLeftOfThePublicRegionAndOfOnesOwn) {
  Desk desk(remembering(16));
  desk.serve(counting(1, 8));
  desk.serve(desk.tenant("me"), counting(20, 8));
  desk.cache().clear();
  for (const std::uint64_t public_tokens : {0, 4, 8, 12}) {
    const Domain me = desk.tenant("me", public_tokens);
    EXPECT_EQ(why(desk, me, counting(1, 9)).tokens_reachable, 8u) << "public, " << public_tokens;
    EXPECT_EQ(why(desk, me, counting(20, 9)).tokens_reachable, 8u) << "mine, " << public_tokens;
    const Domain you = desk.tenant("you", public_tokens);
    EXPECT_EQ(why(desk, you, counting(1, 9)).reason, MissReason::kCleared);
    EXPECT_EQ(why(desk, you, counting(20, 9)).reason, MissReason::kNeverSeen);
  }
}

TEST(Explain, SaysThatARegionHadMoreThanItsQuota) {
  CacheOptions options = remembering(8);
  options.quota_blocks_private = 2;
  Desk desk(options);
  desk.serve(desk.tenant("a"), counting(1, 16));
  desk.serve(desk.tenant("b"), counting(100, 20));
  const Explanation told = why(desk, desk.tenant("a"), counting(1, 16));
  EXPECT_EQ(told.reason, MissReason::kEvicted);
  EXPECT_EQ(told.eviction->cause, EvictionCause::kQuota);
}

TEST(Explain, SaysThatTheTimeOfWhatWasRetainedHadEnded) {
  CacheOptions options = remembering(4);
  options.retain_blocks_max = 2;
  Desk desk(options);
  Sequence sequence = desk.run(counting(1, 8));
  ASSERT_TRUE(desk.cache().retain(sequence, {.tokens = 8, .until_ns = kSecond}).ok());
  desk.cache().close(sequence);
  desk.cache().advance_time(2 * kSecond);
  desk.serve(counting(100, 16));
  const Explanation told = why(desk, counting(1, 8));
  EXPECT_EQ(told.reason, MissReason::kEvicted);
  EXPECT_EQ(told.eviction->cause, EvictionCause::kRetained);
  desk.serve(counting(1, 8));
  desk.serve(counting(200, 16));
  EXPECT_EQ(why(desk, counting(1, 8)).eviction->cause, EvictionCause::kRoom) << "this time not";
}

TEST(Explain, NamesTheOtherAdapterFormatOrSaltOfTheSameOwner) {
  Desk desk(remembering(64));
  Cache& cache = desk.cache();
  const auto as = [&](const char* space, const char* salt, const char* adapter, std::uint32_t who) {
    return cache.domain(space, salt, adapter, OwnerId(who)).value();
  };
  desk.serve(as("model", "mine", "poems", 1), counting(1, 8));
  desk.serve(as("fp16", "mine", "", 1), counting(20, 8));
  desk.serve(as("model", "also mine", "", 1), counting(40, 8));
  const Domain me = as("model", "mine", "", 1);
  EXPECT_EQ(why(desk, me, counting(1, 9)).reason, MissReason::kOtherAdapter);
  EXPECT_EQ(why(desk, me, counting(20, 9)).reason, MissReason::kOtherFormat);
  EXPECT_EQ(why(desk, me, counting(40, 9)).reason, MissReason::kOtherSalt);
  EXPECT_EQ(why(desk, me, counting(40, 9)).tokens_reachable, 8u);
  EXPECT_EQ(why(desk, as("model", "", "", 1), counting(40, 9)).reason, MissReason::kOtherSalt)
      << "also where nothing is private now";
  const Domain others[] = {as("model", "theirs", "", 2), as("model", "nobody's", "", 0)};
  for (const Domain& other : others) {
    for (const std::uint32_t first : {1u, 20u, 40u}) {
      EXPECT_EQ(why(desk, other, counting(first, 9)).reason, MissReason::kNeverSeen);
    }
  }
}

TEST(Explain, OfTwoReasonsNamesTheOneThatCostMore) {
  Desk desk(remembering(6));
  const auto as = [&](const char* salt) {
    return desk.cache().domain("model", salt, "", OwnerId(1)).value();
  };
  desk.serve(as("a"), counting(1, 8));
  desk.serve(as("b"), counting(1, 16));  // the room is a's
  desk.serve(as("c"), counting(50, 8));
  const Explanation told = why(desk, as("a"), counting(1, 16));
  EXPECT_EQ(told.reason, MissReason::kOtherSalt) << "what left reached 8 tokens";
  EXPECT_GT(told.tokens_reachable, 8u);
  EXPECT_FALSE(told.eviction.has_value());
}

// A window's page may go alone: the block is known and cannot be used.
TEST(Explain, KnowsAWindowsPageThatLeft) {
  CacheOptions options = remembering(12);
  options.slices = {{0}, {4}};
  Desk desk(options);
  desk.serve(counting(1, 16));
  desk.cache().advance_time(kSecond);
  Sequence other = desk.run(counting(100, 16));
  bool found = false;
  for (std::uint32_t length = 3; length <= 17; ++length) {
    const Explanation told = why(desk, counting(1, length));
    if (told.reason == MissReason::kNone) continue;
    EXPECT_EQ(told.reason, MissReason::kEvicted) << length;
    ASSERT_TRUE(told.eviction.has_value());
    EXPECT_EQ(told.eviction->left_ns, kSecond);
    found = true;
  }
  EXPECT_TRUE(found);
}

TEST(Explain, AdmitsWhatIsForgotten) {
  CacheOptions options = Desk::small(2);
  options.departures_max = 2;
  Desk desk(options);
  desk.cache().advance_time(kSecond);
  desk.serve(counting(1, 8));
  EXPECT_FALSE(why(desk, counting(50, 8)).forgotten_until_ns.has_value());
  desk.serve(counting(100, 8));
  EXPECT_EQ(why(desk, counting(1, 8)).reason, MissReason::kEvicted);
  desk.cache().advance_time(2 * kSecond);
  desk.serve(counting(200, 8));
  const Explanation told = why(desk, counting(1, 8));
  EXPECT_EQ(told.reason, MissReason::kNeverSeen);
  EXPECT_EQ(told.forgotten_until_ns, kSecond);
}

// A salt's number is used again; what its first tenant left behind is no business of the next.
TEST(Explain, ForgetsATenantWithItsSalt) {
  Desk desk(remembering(4));
  std::optional<Domain> a = desk.tenant("a");
  const SaltId number = a->salt();
  desk.serve(*a, counting(1, 12));
  a.reset();
  desk.cache().clear();
  const Domain b = desk.tenant("b");
  ASSERT_EQ(b.salt(), number);
  EXPECT_EQ(why(desk, b, counting(1, 12)).reason, MissReason::kNeverSeen);
  EXPECT_EQ(why(desk, desk.tenant("a"), counting(1, 12)).reason, MissReason::kCleared);
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
