// What the next turn of a conversation leaves behind goes first, and nobody else loses anything.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

#include "kv/session_fixture.h"

namespace pagoda::kv {
namespace {

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

// A task that is begun twice, or a client whose first message is always the same: prompts part
// where the answers do.
TEST(Session, ConversationsThatBeginAlikeLoseNothing) {
  CacheFixture fixture(with_sessions(100));
  const Tokens first = counting(1, 10);  // of both, with the template's text behind the message
  std::array<Tokens, 2> prompts = {first, first};
  for (std::uint32_t turn = 0; turn < 5; ++turn) {
    for (std::uint32_t who = 0; who < 2; ++who) {
      CacheScope scope = session(fixture, "key");
      scope.first_turn_tokens = first.size();
      fixture.serve(scope, prompts[who]);
      EXPECT_EQ(superseded(fixture), 0u) << "turn " << turn << " of " << who;
      prompts[who] = prompts[who] + counting(1000 * (who + 1) + 10 * turn, 6);
    }
  }
}

// A request is opened when its pages are loaded, when it starts, and when it starts again: it is
// one turn of one conversation.
TEST(Session, ARequestThatIsOpenedAgainIsOfTheSameConversation) {
  for (const bool knows_branch : {true, false}) {
    CacheFixture fixture(with_sessions(200));
    const auto prompt = [](std::uint32_t i) { return counting(100 * (i + 1), 24); };
    for (std::uint32_t i = 0; i < SessionTable::kBranchesMax; ++i) {
      CacheScope scope = session(fixture, "key");
      scope.first_turn_tokens = 24;
      for (int opening = 0; opening < 3; ++opening) {
        const Sequence opened = fixture.open(scope, prompt(i));
        if (knows_branch) scope.branch = opened.branch();
      }
      fixture.serve(scope, prompt(i) + counting(50, 8));
    }
    CacheScope next = session(fixture, "key");
    next.first_turn_tokens = 24;
    fixture.serve(next, prompt(0) + counting(50, 3) + counting(90, 8));
    EXPECT_EQ(superseded(fixture), knows_branch ? 2u : 0u) << "the first is known, or forgotten";
  }
}

TEST(Session, WhatOnlyBringsBlocksIntoThePoolIsNoTurn) {
  CacheFixture fixture(with_sessions(40));
  fixture.serve(session(fixture, "a"), kTurn);
  CacheScope fetch = session(fixture, "a");
  fetch.is_use = false;
  fixture.serve(fetch, kTurn + counting(60, 8));
  for (const char* const key : {"a", "b", ""}) {
    CacheScope other = session(fixture, key);
    other.is_use = false;
    fixture.serve(other, kTurn);
  }
  EXPECT_EQ(superseded(fixture), 0u);
  EXPECT_EQ(fixture.cache().sessions().sessions(), 1u);
  fixture.serve(session(fixture, "a"), kNextTurn);
  EXPECT_EQ(superseded(fixture), 2u) << "the conversation still has its blocks";
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

TEST(Session, WhatRunsIsNotSuperseded) {
  CacheFixture fixture(with_sessions(20));
  Sequence running = fixture.run(session(fixture, "a"), kTurn);
  Sequence next = fixture.run(session(fixture, "a"), kNextTurn);
  EXPECT_EQ(superseded(fixture), 0u);
  fixture.cache().close(running);
  fixture.serve(session(fixture, "a"), kNextTurn + counting(9, 2));
  EXPECT_EQ(superseded(fixture), 2u) << "it has ended";
}

// Clients mark the end of every prompt: what the next turn drops was marked, too.
TEST(Session, WhatATurnLeavesBehindIsNotRetainedAnyMore) {
  CacheOptions options = with_sessions(12);
  options.retain_blocks_max = 6;
  CacheFixture fixture(options);
  serve_and_keep(fixture, session(fixture, "a"), kTurn);
  EXPECT_EQ(fixture.cache().retention().blocks(), 6u);
  fixture.serve(session(fixture, "a"), kNextTurn);
  EXPECT_EQ(superseded(fixture), 2u);
  EXPECT_EQ(fixture.cache().retention().blocks(), 4u) << "the next mark has room again";
  fixture.serve(counting(700, 24));
  EXPECT_EQ(fixture.matched(kTurn + counting(1, 1)), 16u);
  fixture.serve(counting(800, 32));
  EXPECT_EQ(fixture.matched(kTurn + counting(1, 1)), 16u) << "what is retained goes last";
}

TEST(Session, OfOneTenantIsNoOthers) {
  CacheFixture fixture(with_sessions(60));
  fixture.serve(session(fixture, "key", "anna"), kTurn);
  fixture.serve(session(fixture, "key", "bert"), kTurn);
  EXPECT_FALSE(fixture.cache().close_session(fixture.everyone(), "key").has_value());
  EXPECT_EQ(fixture.cache().close_session(fixture.scope("model", "bert"), "key"), 6u);
  EXPECT_EQ(fixture.cache().sessions().sessions(), 1u);
  fixture.serve(session(fixture, "key", "anna"), kNextTurn);
  EXPECT_EQ(superseded(fixture), 8u) << "hers is open";
}

// What a session publishes is everybody's: it neither ends with it nor is left behind.
TEST(Session, HasNothingOfWhatItPublished) {
  CacheFixture fixture(with_sessions(40));
  CacheScope press = session(fixture, "a", "press");
  press.public_tokens = 16;
  fixture.serve(press, kTurn);
  EXPECT_EQ(fixture.cache().close_session(press, "a"), 2u) << "two of six blocks are private";
  CacheScope everyone = session(fixture, "b");
  fixture.serve(everyone, kTurn);
  EXPECT_EQ(fixture.cache().close_session(everyone, "b"), 2u) << "and two are new to everyone";
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
  std::uint64_t closed = 0;
  std::uint64_t demoted = 0;
  std::uint64_t taken = 0;
  std::uint64_t left = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CacheOptions options = with_sessions(24);
    options.policy = eviction_policies()[seed % eviction_policies().size()];
    options.retain_blocks_max = seed % 2 == 0 ? 0 : 8;
    options.quota_blocks_private = seed % 3 == 0 ? 10 : 0;
    options.session_timeout_ns = 5 * kSessionSecond;
    if (seed % 4 == 1) options.groups = {{.window = 0}, {.window = 6}};
    CacheFixture fixture(options);
    Cache& cache = fixture.cache();
    std::vector<Sequence> running;
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (int step = 0; step < 300; ++step) {
      cache.advance_time(step * kSessionSecond / 4);
      while (cache.close_idle_session()) cache.check();
      if (below(3) == 0) taken += cache.take_closed(1 + below(5)).size();
      if (!running.empty() && below(2) == 0) running.erase(running.begin());
      cache.check();
      CacheScope scope = session(fixture, below(4) == 0 ? "" : std::to_string(below(3)),
                                 below(2) == 0 ? "" : "salt");
      scope.public_tokens = 4 * below(3);
      scope.is_use = below(8) != 0;
      const Tokens prompt = counting(1, 4 + below(12)) + counting(100 * below(4), below(20));
      if (below(6) == 0) demoted += demote(fixture, scope, prompt);
      const Match match = cache.match(scope, prompt);
      if (cache.blocks_needed(scope, match, prompt.size()) > cache.blocks_available()) continue;
      Sequence sequence = fixture.run(scope, prompt);
      if (below(3) == 0)
        (void)cache.retain(sequence, {.tokens = 8,
                                      .until_ns = (step + 8) * kSessionSecond,
                                      .priority = 1,
                                      .may_clip = true});
      cache.check();
      if (below(4) == 0) running.push_back(cache.fork(sequence));
      if (below(4) == 0) running.push_back(std::move(sequence));
      if (below(10) == 0)
        closed += cache.close_session(scope, std::to_string(below(3))).value_or(0);
      if (below(30) == 0) cache.clear();
      cache.check();
    }
    const auto cause = static_cast<std::size_t>(EvictionCause::kSuperseded);
    left += cache.stats().blocks_evicted_by_cause[cause];
  }
  for (const std::uint64_t happened : {closed, demoted, taken, left}) EXPECT_GT(happened, 100u);
}

}  // namespace
}  // namespace pagoda::kv
