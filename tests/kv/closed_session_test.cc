// What a session that ends, and a prompt that is demoted, leave: superseded blocks, and no others.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kv/session_fixture.h"

namespace pagoda::kv {
namespace {

TEST(Session, ThatEndsIsTheFirstToMakeRoom) {
  CacheFixture fixture(with_sessions(12));
  fixture.serve(counting(900, 12));
  fixture.serve(session(fixture, "a"), kTurn);
  fixture.serve(session(fixture, "b"), counting(1, 8) + counting(300, 4));
  const CacheScope scope = fixture.everyone();
  EXPECT_FALSE(fixture.cache().close_session(scope, "c").has_value());
  const auto closed = fixture.cache().close_session(scope, "a");
  fixture.cache().check();
  EXPECT_EQ(closed, 4u) << "two blocks of six are b's, too";
  EXPECT_EQ(superseded(fixture), 4u);
  EXPECT_FALSE(fixture.cache().close_session(scope, "a").has_value()) << "it is closed";
  EXPECT_EQ(fixture.matched(kTurn + counting(1, 1)), 24u) << "it can be resumed while it is there";
  fixture.serve(counting(700, 24));
  EXPECT_EQ(fixture.matched(counting(900, 13)), 12u);
  EXPECT_EQ(fixture.matched(counting(1, 8) + counting(300, 5)), 12u);
}

TEST(Session, ThatEndsIsRetainedNoMore) {
  for (const bool is_taken : {true, false}) {
    CacheOptions options = with_sessions(12);
    options.retain_blocks_max = 6;
    CacheFixture fixture(options);
    fixture.serve(counting(900, 12));
    serve_and_keep(fixture, session(fixture, "a"), kTurn);
    ASSERT_EQ(fixture.cache().close_session(fixture.everyone(), "a"), 6u);
    if (is_taken) {
      EXPECT_EQ(fixture.cache().take_closed(100).size(), 6u);
      EXPECT_EQ(fixture.cache().retention().blocks(), 0u);
    }
    fixture.cache().check();
    fixture.serve(counting(700, 36));  // three are free: six leave
    EXPECT_EQ(fixture.matched(kTurn), 0u) << is_taken;
    EXPECT_EQ(fixture.matched(counting(900, 13)), 12u) << is_taken;
  }
}

// Who copies a session's blocks takes some now and some later: each once, parents first, and none
// that has left or is used again.
TEST(Session, ThatEndedIsTakenInParts) {
  CacheFixture fixture(with_sessions(16));
  fixture.serve(session(fixture, "a"), kTurn);
  fixture.serve(session(fixture, "a"), counting(300, 16));
  fixture.serve(session(fixture, "b"), counting(400, 8));
  Cache& cache = fixture.cache();
  EXPECT_FALSE(cache.sessions().has_closed());
  for (const char* const key : {"a", "b"}) {
    ASSERT_TRUE(cache.close_session(fixture.everyone(), key).has_value());
  }
  const auto depths_of_taken = [&](std::size_t nodes_max) {
    std::vector<std::uint32_t> depths;
    for (const NodeId node : cache.take_closed(nodes_max)) {
      EXPECT_TRUE(cache.tree().is_live(node));
      depths.push_back(cache.tree().depth(node));
    }
    cache.check();
    return depths;
  };
  using Depths = std::vector<std::uint32_t>;
  EXPECT_EQ(depths_of_taken(4), (Depths{1, 2, 3, 4}));
  fixture.serve(counting(700, 24));  // four are free: the first chain's last two leave
  EXPECT_EQ(superseded(fixture), 10u);
  EXPECT_EQ(depths_of_taken(3), (Depths{1, 2, 3})) << "of the second chain";
  fixture.serve(counting(300, 17));  // which is used again
  EXPECT_EQ(depths_of_taken(100), (Depths{1, 2})) << "of the other session";
  EXPECT_TRUE(depths_of_taken(100).empty());
  EXPECT_FALSE(cache.sessions().has_closed());
}

TEST(Session, EndsByItselfWhenNobodyUsesIt) {
  CacheOptions options = with_sessions(30);
  options.session_timeout_ns = 10 * kSessionSecond;
  CacheFixture fixture(options);
  fixture.cache().advance_time(kSessionSecond);
  fixture.serve(session(fixture, "a"), kTurn);
  fixture.cache().advance_time(9 * kSessionSecond);
  fixture.serve(session(fixture, "b"), counting(300, 16));
  EXPECT_EQ(fixture.cache().sessions().next_due_ns(), 11 * kSessionSecond);
  EXPECT_FALSE(fixture.cache().close_idle_session());
  fixture.cache().advance_time(11 * kSessionSecond);
  ASSERT_TRUE(fixture.cache().close_idle_session());
  EXPECT_FALSE(fixture.cache().close_idle_session()) << "b was used since";
  EXPECT_EQ(fixture.cache().sessions().sessions(), 1u);
  EXPECT_EQ(superseded(fixture), 6u);
  EXPECT_EQ(fixture.cache().sessions().next_due_ns(), 19 * kSessionSecond);
}

TEST(Session, DoesNotEndWhileARequestOfItRuns) {
  CacheOptions options = with_sessions(40);
  options.session_timeout_ns = 10 * kSessionSecond;
  CacheFixture fixture(options);
  Cache& cache = fixture.cache();
  cache.advance_time(kSessionSecond);
  Sequence running = fixture.run(session(fixture, "a"), kTurn);
  Sequence fork = cache.fork(running);
  cache.advance_time(2 * kSessionSecond);
  fixture.serve(session(fixture, "b"), counting(300, 16));
  cache.advance_time(30 * kSessionSecond);
  EXPECT_TRUE(cache.close_idle_session()) << "b, though a was opened before it";
  EXPECT_FALSE(cache.close_idle_session());
  cache.close(running);
  cache.advance_time(60 * kSessionSecond);
  EXPECT_FALSE(cache.close_idle_session()) << "its other answer runs";
  cache.close(fork);
  cache.advance_time(70 * kSessionSecond - 1);
  EXPECT_FALSE(cache.close_idle_session()) << "ten seconds from the end of the last";
  cache.advance_time(70 * kSessionSecond);
  EXPECT_TRUE(cache.close_idle_session());
}

TEST(Session, OfAnOwnerIsForgottenWithItsRegions) {
  for (const bool is_retired : {true, false}) {
    CacheFixture fixture(with_sessions(60));
    Cache& cache = fixture.cache();
    const auto owned = [&](std::string_view salt, OwnerId owner) {
      CacheScope scope = cache.scope("model", salt, {}, owner).value();
      scope.session = "key";
      return scope;
    };
    fixture.serve(owned("anna's", OwnerId(1)), kTurn);
    fixture.serve(owned("anna's other", OwnerId(1)), kTurn);
    fixture.serve(owned("bert's", OwnerId(2)), kTurn);
    if (is_retired) {
      cache.retire(OwnerId(1));
    } else {
      cache.clear(OwnerId(1));
    }
    cache.check();
    EXPECT_EQ(cache.sessions().sessions(), 1u);
    EXPECT_EQ(cache.close_session(owned("bert's", OwnerId(2)), "key"), 6u);
    cache.clear();
    EXPECT_EQ(cache.sessions().sessions(), 0u);
    EXPECT_EQ(superseded(fixture), 0u);
  }
}

// What others have below a public prefix changes neither what is demoted nor what is told.
TEST(Demote, LeavesAloneWhatOthersHaveBelowAPublicPrefix) {
  const Tokens prefix = counting(1, 16);
  for (const int others : {0, 1, 2}) {
    CacheFixture fixture(with_sessions(100));
    const auto tenant = [&](const std::string& salt) { return fixture.tenant(salt, 16); };
    fixture.serve(tenant("press"), prefix + counting(50, 1));
    for (int i = 0; i < others; ++i) {
      fixture.serve(tenant("other" + std::to_string(i)), prefix + counting(100, 12));
    }
    EXPECT_EQ(demote(fixture, tenant("anna"), prefix + counting(100, 12)), 0u)
        << "she has nothing there, and the prefix is everybody's";
    EXPECT_EQ(superseded(fixture), 0u);
    fixture.serve(tenant("anna"), prefix + counting(200, 8));
    EXPECT_EQ(demote(fixture, tenant("anna"), prefix + counting(200, 1)), 2u) << others;
    EXPECT_EQ(superseded(fixture), 2u);
    for (int i = 0; i < others; ++i) {
      const CacheScope other = tenant("other" + std::to_string(i));
      EXPECT_EQ(demote(fixture, other, prefix + counting(100, 13)), 3u) << "what is its own";
    }
    EXPECT_EQ(demote(fixture, fixture.everyone(), prefix + counting(300, 1)), 4u)
        << "public blocks are the public's, whoever is below them";
  }
}

TEST(Demote, EndsAtWhatOthersGoOnFromRunOrRetain) {
  CacheOptions options = with_sessions(100);
  options.retain_blocks_max = 50;
  CacheFixture fixture(options);
  const CacheScope anna = fixture.tenant("anna");
  fixture.serve(anna, kTurn);
  fixture.serve(anna, kNextTurn);
  EXPECT_EQ(demote(fixture, anna, kTurn + counting(1, 1)), 2u) << "the other goes on from the rest";
  EXPECT_EQ(demote(fixture, anna, kNextTurn), 2u) << "as long as both are there";
  serve_and_keep(fixture, anna, counting(300, 8));
  EXPECT_EQ(demote(fixture, anna, counting(300, 9)), 2u);
  EXPECT_GT(fixture.cache().take_closed(100).size(), 0u);
  EXPECT_EQ(fixture.cache().retention().blocks(), 0u) << "its own grants end";
  const Sequence running = fixture.run(anna, counting(400, 8));
  EXPECT_EQ(demote(fixture, anna, counting(400, 9)), 0u);
  serve_and_keep(fixture, fixture.tenant("press", 8), counting(500, 9));
  EXPECT_EQ(demote(fixture, fixture.everyone(), counting(500, 9)), 0u) << "a tenant retains it";
  EXPECT_EQ(fixture.cache().retention().blocks(), 2u);
}

// Stores copy what is about to leave: not what nobody will ask for, however much of that there is.
TEST(Session, WhatIsSupersededHidesNothingThatIsAboutToLeave) {
  CacheFixture fixture(with_sessions(64));
  for (std::uint32_t i = 0; i < SessionTable::kBranchesMax; ++i) {
    fixture.serve(session(fixture, "key"), counting(100 * (i + 1), 8));
  }
  ASSERT_TRUE(fixture.cache().close_session(fixture.everyone(), "key").has_value());
  EXPECT_EQ(superseded(fixture), 16u);
  fixture.serve(counting(5000, 4));
  fixture.serve(counting(6000, 4));
  const std::vector<NodeId> next = fixture.cache().eviction_candidates(2);
  fixture.cache().check();
  ASSERT_EQ(next.size(), 2u);
  for (const NodeId node : next) EXPECT_FALSE(fixture.cache().sessions().is_superseded(node));
}

}  // namespace
}  // namespace pagoda::kv
