// KV policies: their names, and what the cache keeps under one.
#include "kv/kv_policy.h"

#include <gtest/gtest.h>

#include "kv/cache_fixture.h"

namespace pagoda::kv {
namespace {

TEST(KvPolicy, IsReadFromItsName) {
  for (const KvPolicy& policy : {KvPolicy{}, KvPolicy{.window = 1024},
                                 KvPolicy{.window = 1024, .sinks = 4}, KvPolicy{.window = 1}}) {
    const Result<KvPolicy> read = KvPolicy::parse(policy.name());
    ASSERT_TRUE(read.ok()) << policy.name();
    EXPECT_EQ(read.value(), policy);
  }
  EXPECT_EQ(KvPolicy::parse("streaming:4+1024").value(), (KvPolicy{.window = 1024, .sinks = 4}));
  EXPECT_EQ(KvPolicy::parse("streaming:0+7").value().name(), "window:7");
}

TEST(KvPolicy, RefusesOtherNamesAndSaysWhatItExpects) {
  for (const char* const text :
       {"", "window", "window:", "window:0", "window:-1", "window:1k", "window:5 ", "streaming:4",
        "streaming:4+", "streaming:+4", "streaming:4+0", "streaming:4+5+6", "streaming:4x+5",
        "window:4294967296", "h2o", "Full"}) {
    const Result<KvPolicy> read = KvPolicy::parse(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.error().message.find("expected full, window:W, streaming:S+W"),
              std::string::npos);
  }
}

TEST(KvPolicy, CountsWhatTheNextQueryDoesNotSee) {
  for (std::uint32_t window = 1; window < 8; ++window) {
    for (std::uint32_t sinks = 0; sinks < 6; ++sinks) {
      const KvPolicy policy = {.window = window, .sinks = sinks};
      for (std::uint64_t tokens = 0; tokens < 30; ++tokens) {
        std::uint64_t unseen = 0;
        for (std::uint64_t j = 0; j < tokens; ++j) {
          unseen += j + window <= tokens && j >= sinks ? 1 : 0;
        }
        EXPECT_EQ(policy.tokens_dropped({.prompt = 0, .tokens = tokens}, 4), unseen)
            << policy.name() << " behind " << tokens << " tokens";
      }
    }
  }
  EXPECT_EQ(KvPolicy{}.tokens_dropped({.prompt = 7, .tokens = 1'000'000}, 16), 0u);
}

TEST(KvPolicy, LeavesWindowsOfTheModelAsTheyAre) {
  const std::vector<memory::AttentionSpec> groups = {{}, {.window = 5}};
  const KvPolicy policy = {.window = 9, .sinks = 2};
  EXPECT_EQ(policy.of(groups),
            (std::vector<memory::AttentionSpec>{{.window = 9, .sinks = 2}, {.window = 5}}));
  EXPECT_EQ(KvPolicy{}.of(groups), groups);
}

// A block is kept exactly when a token in it is seen by a query behind the tokens or a later one.
TEST(KvPolicy, BlocksKeptAreThoseWithATokenThatIsSeen) {
  for (std::uint32_t window = 1; window < 12; ++window) {
    for (std::uint32_t sinks = 0; sinks < 10; ++sinks) {
      const memory::AttentionSpec spec = {.window = window, .sinks = sinks};
      for (std::uint64_t tokens = 0; tokens < 40; ++tokens) {
        const memory::BlocksKept kept(spec, tokens, 4);
        std::uint64_t count = 0;
        for (std::uint64_t block = 0; block * 4 < tokens; ++block) {
          bool seen = false;
          for (std::uint64_t j = block * 4; j < block * 4 + 4; ++j) {
            seen = seen || j + window > tokens || j < sinks;
          }
          EXPECT_EQ(kept.contains(block), seen)
              << sinks << "+" << window << ", " << tokens << " tokens, block " << block;
          count += seen ? 1 : 0;
        }
        EXPECT_EQ(kept.count(0, (tokens + 3) / 4), count);
      }
    }
  }
}

CacheScope under(CacheFixture& fixture, const KvPolicy& policy) {
  return fixture.cache().scope("model", "", {}, kNoOwner, policy).value();
}

TEST(KvPolicyCache, KeepsSinksAndWindowHoweverLongTheSequence) {
  CacheFixture fixture(CacheFixture::small(8));
  const CacheScope scope = under(fixture, {.window = 9, .sinks = 5});
  Sequence sequence = fixture.run(scope, counting(1, 4));
  const BlockId first = sequence.table(0)[0];
  const BlockId second = [&] {
    EXPECT_TRUE(fixture.feed(sequence, counting(5, 4)));
    return sequence.table(0)[1];
  }();
  for (std::uint32_t token = 9; token < 400; ++token) {
    ASSERT_TRUE(fixture.feed(sequence, counting(token, 1))) << token;
  }
  EXPECT_EQ(sequence.table(0)[0], first);
  EXPECT_EQ(sequence.table(0)[1], second) << "token 5 is a sink";
  EXPECT_TRUE(sequence.holds(0, 1));
  EXPECT_FALSE(sequence.holds(0, 2));
  EXPECT_LE(sequence.blocks_held(), 2u + 4u);
  EXPECT_GT(fixture.cache().pool().references(first), 0u);
}

TEST(KvPolicyCache, AHitNeedsSinksAndWindow) {
  CacheFixture fixture(CacheFixture::small(64));
  const KvPolicy policy = {.window = 5, .sinks = 3};
  fixture.serve(under(fixture, policy), counting(1, 40));
  EXPECT_EQ(fixture.matched(under(fixture, policy), counting(1, 41)), 40u);
  EXPECT_EQ(fixture.matched(counting(1, 41)), 0u) << "under another policy";
  EXPECT_EQ(fixture.matched(under(fixture, {.window = 5, .sinks = 4}), counting(1, 41)), 0u);
  // A request that goes on keeps its sinks and its window; all else goes.
  Sequence running = fixture.open(under(fixture, policy), counting(1, 41));
  fixture.cache().clear();
  fixture.cache().check();
  EXPECT_EQ(fixture.matched(under(fixture, policy), counting(1, 41)), 40u);
  EXPECT_EQ(fixture.matched(under(fixture, policy), counting(1, 30)), 4u)
      << "blocks before the window are gone; the sinks' alone is there";
  EXPECT_EQ(fixture.cache().pool().blocks_free(), 64u - 2u);
}

TEST(KvPolicyCache, ExplainsThatTheSameTokensAreThereUnderAnotherPolicy) {
  CacheFixture fixture(CacheFixture::small(64));
  fixture.serve(under(fixture, {.window = 100}), counting(1, 12));
  EXPECT_EQ(fixture.explain(fixture.everyone(), counting(1, 12)).reason, MissReason::kOtherPolicy);
}

// Clients name policies: those that nobody uses and nothing is left of make way for others.
TEST(KvPolicyCache, HoldsNoMorePoliciesThanAreUsed) {
  CacheFixture fixture(CacheFixture::small(8));
  const CacheScope running = under(fixture, {.window = 7});
  fixture.serve(under(fixture, {.window = 9}), counting(1, 5));
  for (std::uint32_t window = 1000; window < 6000; ++window) {
    EXPECT_EQ(under(fixture, {.window = window}).groups()[0].window, window);
  }
  EXPECT_LE(fixture.cache().namespaces().size(), kPolicyNamespacesKept + 1);
  EXPECT_LE(fixture.cache().tree().nodes(), kPolicyNamespacesKept + 1 + 2);
  EXPECT_EQ(running.groups()[0].window, 7u);
  EXPECT_EQ(fixture.matched(under(fixture, {.window = 9}), counting(1, 6)), 5u) << "blocks stay";
  // As many as are in use are there.
  std::vector<CacheScope> scopes;
  for (std::uint32_t i = 0; i < 3 * kPolicyNamespacesKept; ++i) {
    scopes.push_back(under(fixture, {.window = 100 + i}));
  }
  for (std::uint32_t i = 0; i < scopes.size(); ++i) {
    ASSERT_EQ(scopes[i].groups()[0].window, 100 + i);
  }
  // What takes the place of another finds nothing of it.
  scopes.clear();
  fixture.serve(under(fixture, {.window = 3000}), counting(1, 9));
  EXPECT_EQ(fixture.matched(under(fixture, {.window = 3000}), counting(1, 9)), 8u);
  EXPECT_EQ(fixture.matched(under(fixture, {.window = 3001}), counting(1, 9)), 0u);
  fixture.cache().check();
}

}  // namespace
}  // namespace pagoda::kv
