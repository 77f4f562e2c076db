// What the next turn of a conversation leaves behind goes first, and nobody else loses anything.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "kv/cache_fixture.h"

namespace pagoda::kv {
namespace {

constexpr std::int64_t kSessionSecond = 1'000'000'000;
constexpr std::uint64_t kFirstTurn = 12;  // tokens: a system prompt of 8 and a question of 4

CacheOptions with_sessions(std::uint32_t blocks) {
  CacheOptions options = CacheFixture::small(blocks);
  options.sessions = true;
  options.eviction_records_max = 100;
  return options;
}

CacheScope session(CacheFixture& fixture, std::string key, std::string_view salt = "") {
  CacheScope scope = fixture.scope("model", salt);
  scope.session = std::move(key);
  scope.first_turn_tokens = kFirstTurn;
  return scope;
}

std::uint64_t superseded(CacheFixture& fixture) {
  return fixture.cache().sessions().nodes_superseded();
}

// A conversation of 24 tokens, and its next turn, which leaves it after 16.
const Tokens kTurn = counting(1, 24);
const Tokens kNextTurn = counting(1, 16) + counting(500, 8);

TEST(Session, WhatTheNextTurnLeavesBehindIsEvictedFirst) {
  for (const EvictionPolicy* const policy : eviction_policies()) {
    CacheOptions options = with_sessions(12);
    options.policy = policy;
    CacheFixture fixture(options);
    fixture.serve(counting(900, 12));  // older than all that follows
    fixture.serve(session(fixture, "a"), kTurn);
    fixture.serve(session(fixture, "a"), kNextTurn);
    EXPECT_EQ(superseded(fixture), 2u) << policy->name;
    EXPECT_EQ(fixture.matched(kTurn + counting(1, 1)), 24u) << "it is found while it is there";
    fixture.serve(counting(700, 12));  // there is one free block: two leave
    EXPECT_EQ(fixture.matched(counting(900, 13)), 12u) << policy->name;
    EXPECT_EQ(fixture.matched(kNextTurn + counting(1, 1)), 24u) << policy->name;
    EXPECT_EQ(fixture.matched(kTurn + counting(1, 1)), 16u) << policy->name;
    EXPECT_EQ(fixture.explain(fixture.everyone(), kTurn + counting(1, 1)).eviction->cause,
              EvictionCause::kSuperseded);
    const auto cause = static_cast<std::size_t>(EvictionCause::kSuperseded);
    EXPECT_EQ(fixture.cache().stats().blocks_evicted_by_cause[cause], 2u);
  }
}

TEST(Session, WithoutAKeyNothingIsSuperseded) {
  CacheFixture fixture(with_sessions(16));
  fixture.serve(kTurn);
  fixture.serve(kNextTurn);
  EXPECT_EQ(superseded(fixture), 0u);
  CacheOptions off = with_sessions(16);
  off.sessions = false;
  CacheFixture without(off);
  without.serve(session(without, "a"), kTurn);
  without.serve(session(without, "a"), kNextTurn);
  EXPECT_EQ(superseded(without), 0u);
}

TEST(Session, ATurnThatSharesNoMoreThanTheFirstQuestionIsAnotherConversation) {
  CacheFixture fixture(with_sessions(20));
  fixture.serve(session(fixture, "a"), kTurn);
  fixture.serve(session(fixture, "a"), counting(1, 12) + counting(500, 8));
  EXPECT_EQ(superseded(fixture), 0u) << "12 tokens are the first turn";
  fixture.serve(session(fixture, "a"), counting(1, 14) + counting(600, 8));
  EXPECT_GT(superseded(fixture), 0u) << "14 are more, though they end inside a block";
}

// Sub-agents that a client gives one key: their turns come in any order.
TEST(Session, ConversationsThatTakeTurnsUnderOneKeyLoseNothing) {
  CacheFixture fixture(with_sessions(100));
  const Tokens system = counting(1, 8);
  Tokens a = system + counting(100, 8);
  Tokens b = system + counting(200, 8);
  Tokens c = system + counting(300, 8);
  for (std::uint32_t turn = 0; turn < 6; ++turn) {
    for (Tokens* const prompt : {&a, &b, &c, &b}) {
      fixture.serve(session(fixture, "key"), *prompt);
      EXPECT_EQ(superseded(fixture), 0u);
      *prompt = *prompt + counting(1000 * (turn + 1), 5);
    }
  }
  // One of them changes what it said before: its own tail is superseded, and no other's.
  const Tokens changed = Tokens(b.begin(), b.begin() + 20) + counting(5000, 8);
  fixture.serve(session(fixture, "key"), changed);
  const std::uint64_t left = superseded(fixture);
  EXPECT_GT(left, 0u);
  for (std::uint32_t i = 0; i < left; ++i) fixture.serve(counting(7000 + 100 * i, 4));
  for (const Tokens& prompt : {a, c}) {
    EXPECT_GE(fixture.matched(prompt), prompt.size() - 5) << "all but what was not asked for yet";
  }
}

TEST(Session, WhatOthersUseKeepsItsRank) {
  const auto serve_other = [](CacheFixture& fixture, int who) {
    if (who == 0) return fixture.serve(fixture.everyone(), kTurn + counting(1, 1));
    if (who == 1) return fixture.serve(session(fixture, "other"), kTurn + counting(1, 1));
  };
  for (int who = 0; who < 3; ++who) {
    CacheFixture fixture(with_sessions(20));
    fixture.serve(session(fixture, "a"), kTurn);
    serve_other(fixture, who);
    fixture.serve(session(fixture, "a"), kNextTurn);
    EXPECT_EQ(superseded(fixture), who == 2 ? 2u : 0u) << who;
  }
  // The same prompt under another salt is another region, and other blocks.
  CacheFixture fixture(with_sessions(40));
  fixture.serve(session(fixture, "a", "s1"), kTurn);
  fixture.serve(session(fixture, "a", "s2"), kTurn);
  fixture.serve(session(fixture, "a", "s1"), kNextTurn);
  EXPECT_EQ(superseded(fixture), 2u);
  const CacheScope other = fixture.scope("model", "s2");
  fixture.serve(counting(900, 8));
  EXPECT_EQ(fixture.matched(other, kTurn + counting(1, 1)), 24u);
}

TEST(Session, WhatIsAskedForAgainIsNotSupersededAnyMore) {
  CacheFixture fixture(with_sessions(20));
  fixture.serve(session(fixture, "a"), kTurn);
  fixture.serve(session(fixture, "a"), kNextTurn);
  EXPECT_EQ(superseded(fixture), 2u);
  fixture.serve(session(fixture, "a"), kTurn + counting(50, 1));
  EXPECT_EQ(fixture.matched(kTurn + counting(50, 2)), 25u);
  EXPECT_EQ(superseded(fixture), 2u) << "the other turn's tail, now";
}

TEST(Session, WhatRunsOrIsRetainedIsNotSuperseded) {
  CacheOptions options = with_sessions(12);
  options.retain_blocks_max = 6;
  CacheFixture fixture(options);
  Sequence running = fixture.run(session(fixture, "a"), kTurn);
  Sequence next = fixture.run(session(fixture, "a"), kNextTurn);
  EXPECT_EQ(superseded(fixture), 0u);
  ASSERT_TRUE(fixture.cache()
                  .retain(running, {.tokens = 24, .until_ns = kSessionSecond, .priority = 1})
                  .ok());
  fixture.cache().close(running);
  fixture.cache().close(next);
  fixture.serve(session(fixture, "a"), kNextTurn + counting(9, 2));
  fixture.serve(counting(700, 12));
  fixture.serve(counting(800, 12));
  EXPECT_EQ(fixture.matched(kTurn + counting(1, 1)), 24u);
}

TEST(Session, ThatEndsIsTheFirstToMakeRoom) {
  CacheFixture fixture(with_sessions(12));
  fixture.serve(counting(900, 12));
  fixture.serve(session(fixture, "a"), kTurn);
  fixture.serve(session(fixture, "b"), counting(1, 8) + counting(300, 4));
  const CacheScope scope = fixture.everyone();
  EXPECT_FALSE(fixture.cache().close_session(scope, "c").has_value());
  const auto closed = fixture.cache().close_session(scope, "a");
  fixture.cache().check();
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->size(), 4u) << "two blocks of six are b's, too";
  EXPECT_FALSE(fixture.cache().close_session(scope, "a").has_value()) << "it is closed";
  EXPECT_EQ(fixture.matched(kTurn + counting(1, 1)), 24u) << "it can be resumed while it is there";
  fixture.serve(counting(700, 24));
  EXPECT_EQ(fixture.matched(counting(900, 13)), 12u);
  EXPECT_EQ(fixture.matched(counting(1, 8) + counting(300, 5)), 12u);
}

TEST(Session, EndsByItselfWhenNobodyUsesIt) {
  CacheOptions options = with_sessions(30);
  options.session_timeout_ns = 10 * kSessionSecond;
  CacheFixture fixture(options);
  fixture.cache().advance_time(kSessionSecond);
  fixture.serve(session(fixture, "a"), kTurn);
  fixture.cache().advance_time(9 * kSessionSecond);
  fixture.serve(session(fixture, "b"), counting(300, 16));
  EXPECT_FALSE(fixture.cache().close_idle_session().has_value());
  fixture.cache().advance_time(11 * kSessionSecond);
  ASSERT_TRUE(fixture.cache().close_idle_session().has_value());
  EXPECT_FALSE(fixture.cache().close_idle_session().has_value()) << "b was used since";
  EXPECT_EQ(fixture.cache().sessions().sessions(), 1u);
  EXPECT_EQ(superseded(fixture), 6u);
}

TEST(Session, AHostileClientForgetsItsOwnSessionsFirst) {
  CacheFixture fixture(with_sessions(40));
  fixture.serve(session(fixture, "kept", "modest"), kTurn);
  for (int i = 0; i < 500; ++i) {
    fixture.serve(session(fixture, std::to_string(i), "greedy"), counting(1, 4));
  }
  EXPECT_EQ(fixture.cache().sessions().sessions(), SessionTable::kSessionsAccountMax + 1);
  fixture.serve(session(fixture, "kept", "modest"), kNextTurn);
  EXPECT_EQ(superseded(fixture), 2u) << "the other tenant's session is known";
  for (int i = 0; i < 3000; ++i) {
    fixture.serve(session(fixture, "key", "salt" + std::to_string(i)), counting(1, 4));
  }
  EXPECT_EQ(fixture.cache().sessions().sessions(), SessionTable::kSessionsMax);
  // Conversations under one key are bounded as well; those that are forgotten keep their rank.
  CacheFixture many(with_sessions(200));
  for (std::uint32_t i = 0; i < 40; ++i) {
    many.serve(session(many, "key"), counting(1, 8) + counting(100 * (i + 1), 12));
  }
  many.serve(session(many, "key"), counting(1, 8) + counting(100, 6) + counting(9000, 4));
  EXPECT_EQ(superseded(many), 0u);
}

// Everything at once, in a cache that is always full: check() runs after every call.
TEST(Session, InvariantsHoldWhateverHappens) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CacheOptions options = with_sessions(24);
    options.policy = eviction_policies()[seed % eviction_policies().size()];
    options.retain_blocks_max = seed % 2 == 0 ? 0 : 8;
    options.quota_blocks_private = seed % 3 == 0 ? 10 : 0;
    options.session_timeout_ns = 5 * kSessionSecond;
    if (seed % 4 == 1) options.groups = {{.window = 0}, {.window = 6}};
    CacheFixture fixture(options);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (int step = 0; step < 200; ++step) {
      fixture.cache().advance_time(step * kSessionSecond / 4);
      while (fixture.cache().close_idle_session()) fixture.cache().check();
      CacheScope scope = session(fixture, below(4) == 0 ? "" : std::to_string(below(3)),
                                 below(2) == 0 ? "" : "salt");
      Tokens prompt = counting(1, 4 + below(12)) + counting(100 * below(4), below(20));
      if (options.groups.size() > 1) prompt.resize(std::min<std::size_t>(prompt.size(), 20));
      if (prompt.empty()) continue;
      Sequence sequence = fixture.run(scope, prompt);
      if (below(3) == 0)
        (void)fixture.cache().retain(sequence, {.tokens = 8,
                                                .until_ns = (step + 8) * kSessionSecond,
                                                .priority = 1,
                                                .may_clip = true});
      fixture.cache().close(sequence);
      fixture.cache().check();
      if (below(10) == 0) (void)fixture.cache().close_session(scope, std::to_string(below(3)));
      if (below(30) == 0) fixture.cache().clear();
      fixture.cache().check();
    }
    EXPECT_LE(superseded(fixture), fixture.cache().tree().nodes());
  }
}

}  // namespace
}  // namespace pagoda::kv
