// KV policies that select pages: how many blocks go and when, which ones, and what the cache does
// with them.
#include "kv/page_selection.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "kv/cache_fixture.h"

namespace pagoda::kv {
namespace {

KvPolicy h2o(std::uint32_t budget, std::uint32_t recent) {
  KvPolicy policy = KvPolicy::h2o(budget);
  policy.observed = recent;
  return policy;
}

KvPolicy snapkv(std::uint32_t budget, std::uint32_t window, std::uint32_t kernel) {
  KvPolicy policy = KvPolicy::snapkv(budget);
  policy.observed = window;
  policy.kernel = kernel;
  return policy;
}

TEST(SelectingPolicy, IsReadFromItsName) {
  struct Row {
    const char* text;
    KvPolicy policy;
    const char* name;
  };
  for (const Row& row :
       {Row{"h2o:1024", h2o(1024, 128), "h2o:1024+128"}, Row{"h2o:64", h2o(64, 32), "h2o:64+32"},
        Row{"h2o:1024+256", h2o(1024, 256), "h2o:1024+256"},
        Row{"snapkv:1024", snapkv(1024, 64, 5), "snapkv:1024+64"},
        Row{"snapkv:1024+32", snapkv(1024, 32, 5), "snapkv:1024+32"},
        Row{"snapkv:100+32/7", snapkv(100, 32, 7), "snapkv:100+32/7"}}) {
    const Result<KvPolicy> read = KvPolicy::parse(row.text);
    ASSERT_TRUE(read.ok()) << row.text;
    EXPECT_EQ(read.value(), row.policy) << row.text;
    EXPECT_EQ(row.policy.name(), row.name);
    EXPECT_EQ(KvPolicy::parse(row.name).value(), row.policy);
  }
}

TEST(SelectingPolicy, RefusesWhatCannotBe) {
  struct Row {
    const char* text;
    const char* why;
  };
  for (const Row& row :
       {Row{"h2o:", "expected"}, Row{"h2o", "expected"}, Row{"h2o:64+", "expected"},
        Row{"h2o:64+8/3", "expected"}, Row{"h2o:6x", "expected"}, Row{"snapkv:64+8/", "expected"},
        Row{"h2o:64+0", "recent tokens must be at least 1 and fewer than the budget"},
        Row{"h2o:64+64", "recent tokens must be"}, Row{"h2o:0", "recent tokens must be"},
        Row{"h2o:1", "recent tokens must be"}, Row{"snapkv:64+64", "the window must be"},
        Row{"snapkv:64+8/4", "the kernel must be an odd number, at most 63"},
        Row{"snapkv:64+8/65", "the kernel must be"}}) {
    const Result<KvPolicy> read = KvPolicy::parse(row.text);
    ASSERT_FALSE(read.ok()) << row.text;
    EXPECT_NE(read.error().message.find(row.why), std::string::npos) << read.error().message;
  }
}

// Step by step: one block after the other, while there are too many tokens and a block that may go.
std::uint64_t blocks_dropped_slowly(const KvPolicy& policy, SequenceLengths lengths,
                                    std::uint64_t block_tokens) {
  std::uint64_t dropped = 0;
  for (std::uint64_t tokens = lengths.prompt; tokens <= lengths.tokens; ++tokens) {
    const std::uint64_t old = tokens - std::min<std::uint64_t>(tokens, policy.observed);
    while (tokens - dropped * block_tokens > policy.budget && (dropped + 1) * block_tokens <= old) {
      ++dropped;
    }
    if (policy.choice == PageChoice::kSnapKv) break;
  }
  return dropped;
}

TEST(SelectingPolicy, CountsAreThoseOfDroppingOneBlockAfterTheOther) {
  for (const std::uint32_t block_tokens : {1u, 4u, 16u}) {
    for (const KvPolicy& policy : {h2o(2, 1), h2o(9, 4), h2o(20, 19), h2o(40, 3), snapkv(2, 1, 1),
                                   snapkv(9, 8, 3), snapkv(33, 5, 5)}) {
      for (std::uint64_t prompt = 1; prompt < 70; prompt += 3) {
        std::uint64_t held_max = 0;
        for (std::uint64_t tokens = prompt; tokens < prompt + 60; ++tokens) {
          const SequenceLengths lengths = {prompt, tokens};
          const std::uint64_t dropped = blocks_dropped_slowly(policy, lengths, block_tokens);
          const std::uint64_t before =
              tokens == prompt ? 0
                               : blocks_dropped_slowly(policy, {prompt, tokens - 1}, block_tokens);
          held_max = std::max(held_max, tokens - before * block_tokens);
          ASSERT_EQ(policy.blocks_dropped(lengths, block_tokens), dropped)
              << policy.name() << " " << prompt << " " << tokens << " blocks of " << block_tokens;
          EXPECT_EQ(policy.tokens_dropped(lengths, block_tokens), dropped * block_tokens);
          EXPECT_GE(policy.tokens_held_max(lengths, block_tokens), held_max)
              << policy.name() << " " << prompt << " " << tokens << " blocks of " << block_tokens;
          // Nothing is dropped before the tokens that may be computed at once.
          const std::uint64_t until = policy.tokens_until_drop(lengths, block_tokens);
          ASSERT_GT(until, 0u);
          for (std::uint64_t more = 1; more < std::min<std::uint64_t>(until, 40); ++more) {
            ASSERT_EQ(blocks_dropped_slowly(policy, {prompt, tokens + more}, block_tokens),
                      dropped);
          }
          if (until < 40) {
            EXPECT_GT(blocks_dropped_slowly(policy, {prompt, tokens + until}, block_tokens),
                      dropped);
          }
        }
        EXPECT_EQ(policy.blocks_dropped({prompt, prompt - 1}, block_tokens), 0u);
        EXPECT_EQ(policy.tokens_until_drop({prompt, 0}, block_tokens), prompt);
      }
    }
  }
}

// What a group holds in the end does not grow with the sequence, and no mask or full context does.
TEST(SelectingPolicy, AnswersOfAnyLengthAreBounded) {
  for (const std::uint64_t tokens : {1000u, 100'000u, 1'000'000u}) {
    EXPECT_EQ(h2o(256, 64).tokens_held_max({500, tokens}, 16), 500u);
    EXPECT_EQ(h2o(256, 64).tokens_held_max({100, tokens}, 16), 257u);
    EXPECT_LE(tokens - h2o(256, 64).tokens_dropped({500, tokens}, 16), 256u);
  }
}

TEST(PageSelection, DropsTheLowestScoresAndOfEqualOnesTheLater) {
  struct Row {
    KvPolicy policy;
    std::vector<std::uint64_t> counters;  // of blocks of 2 tokens
    std::vector<std::uint64_t> dropped;
  };
  const std::vector<Row> rows = {
      {h2o(8, 2), {5, 0, 1, 0, 9, 9, 0, 3, 7, 7, 0, 0}, {1, 3}},
      {h2o(8, 2), {1, 1, 2, 0, 0, 2, 1, 1, 2, 2, 0, 0}, {2, 3}},  // equal: the later ones
      {h2o(10, 2), {1, 1, 2, 0, 0, 2, 1, 1, 0, 1, 0, 0}, {4}},
      {h2o(8, 7), {9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 1}},  // the recent ones stay
      {snapkv(10, 2, 1), {3, 3, 1, 1, 4, 4, 1, 0, 6, 6, 50, 50}, {3}},
      // Neighbours lift the fourth block; behind the window's begin there are none.
      {snapkv(10, 2, 3), {3, 3, 1, 1, 2, 2, 1, 0, 9, 9, 99, 99}, {1}},
      // The first block's score is 2^64.
      {snapkv(10, 2, 5), {1ull << 62, 1ull << 62, 0, 0, 1, 1, 0, 1, 1, 1, 99, 99}, {2}}};
  for (const Row& row : rows) {
    PageSelection selection(2, 2, 12);
    std::copy(row.counters.begin(), row.counters.end(), selection.counters(1, 12));
    EXPECT_FALSE(selection.has_dropped());
    EXPECT_EQ(selection.drop(row.policy, {12, 12}, 1), row.dropped) << row.policy.name();
    EXPECT_TRUE(selection.has_dropped());
    EXPECT_EQ(selection.blocks_dropped(1), row.dropped.size());
    EXPECT_EQ(selection.tokens_dropped(0), 0u) << "groups are apart";
    EXPECT_EQ(selection.drop(row.policy, {12, 12}, 1), std::vector<std::uint64_t>{});
    // The counters of what is left have moved together.
    std::vector<std::uint64_t> left;
    for (std::uint64_t i = 0; i < row.counters.size(); ++i) {
      if (!selection.is_dropped(1, i / 2)) left.push_back(row.counters[i]);
    }
    const std::uint64_t* const counters = selection.counters(1, 12);
    EXPECT_TRUE(std::equal(left.begin(), left.end(), counters)) << row.policy.name();
  }
}

TEST(PageSelection, GoesOnWithTheCountersOfWhatIsLeft) {
  PageSelection selection(1, 2, 4);
  const KvPolicy policy = h2o(6, 2);
  std::uint64_t* counters = selection.counters(0, 7);
  for (std::uint64_t i = 0; i < 7; ++i) counters[i] = 10 + i;
  EXPECT_EQ(selection.drop(policy, {4, 7}, 0), (std::vector<std::uint64_t>{0}));
  counters = selection.counters(0, 9);
  EXPECT_EQ(counters[0], 12u) << "token 2";
  EXPECT_EQ(counters[5], 0u) << "token 7 is new";
  counters[0] = counters[1] = 100;
  EXPECT_EQ(selection.drop(policy, {4, 9}, 0), (std::vector<std::uint64_t>{2})) << "not block 1";
}

CacheScope selecting_scope(CacheFixture& fixture, const KvPolicy& policy,
                           std::uint64_t findable = ~0ull) {
  CacheScope scope = fixture.cache().scope("model", "", {}, kNoOwner, policy).value();
  scope.tokens_found_max = findable;
  return scope;
}

// Runs a prompt whose blocks get attention by their number: the later, the less.
Sequence run_selecting(CacheFixture& fixture, const CacheScope& scope, const Tokens& prompt) {
  Sequence sequence = fixture.open(scope, prompt);
  sequence.select_pages(prompt.size());
  const auto done = static_cast<std::ptrdiff_t>(sequence.tokens_computed());
  EXPECT_TRUE(fixture.feed(sequence, Tokens(prompt.begin() + done, prompt.end())));
  for (std::uint32_t group = 0; group < fixture.cache().options().groups.size(); ++group) {
    std::uint64_t* const counters = sequence.selection()->counters(group, prompt.size());
    for (std::uint64_t i = 0; i < prompt.size(); ++i) counters[i] = prompt.size() - i;
  }
  return sequence;
}

// Returns how many pages went.
std::uint64_t drop_pages(CacheFixture& fixture, Sequence& sequence, const KvPolicy& policy,
                         std::uint64_t prompt_tokens) {
  const std::vector<BlockId> pages = sequence.drop_pages(policy, prompt_tokens);
  for (const BlockId page : pages) fixture.cache().release(page);
  fixture.cache().check();
  return pages.size();
}

TEST(DroppedPages, AreReleasedAndTheRestIsNotPublished) {
  CacheFixture fixture(CacheFixture::small(32));
  const KvPolicy policy = h2o(16, 6);
  const CacheScope scope = selecting_scope(fixture, policy);
  Sequence sequence = run_selecting(fixture, scope, counting(1, 30));
  const BlockId dropped = sequence.table(0)[4];
  EXPECT_EQ(drop_pages(fixture, sequence, policy, 30), 4u);
  fixture.cache().check();
  for (std::uint64_t block = 0; block < 8; ++block) {
    EXPECT_EQ(sequence.holds(0, block), block < 2 || block > 5) << block;
  }
  EXPECT_EQ(sequence.blocks_held(), 4u);
  EXPECT_EQ(fixture.cache().pool().references(dropped), 0u);
  EXPECT_EQ(sequence.tokens_computed(), 30u);
  // The prompt stays to be found, also where it was dropped.
  EXPECT_EQ(fixture.matched(scope, counting(1, 31)), 30u);
  ASSERT_TRUE(fixture.feed(sequence, counting(31, 9)));
  EXPECT_EQ(sequence.tokens_computed(), 39u);
  EXPECT_EQ(sequence.nodes().size(), 7u) << "blocks of the output have no node";
  EXPECT_EQ(fixture.matched(scope, counting(1, 40)), 30u) << "rows behind a drop are nobody else's";
  fixture.cache().close(sequence);
  fixture.cache().check();
  EXPECT_EQ(fixture.matched(scope, counting(1, 40)), 30u);
  EXPECT_EQ(fixture.cache().blocks_available(), 32u);
}

// A block in the middle makes room while those behind it are held.
TEST(DroppedPages, MakeRoomForOthers) {
  CacheFixture fixture(CacheFixture::small(8));
  const KvPolicy policy = snapkv(12, 4, 1);
  const CacheScope scope = selecting_scope(fixture, policy);
  Sequence sequence = run_selecting(fixture, scope, counting(1, 32));
  EXPECT_EQ(fixture.cache().blocks_available(), 0u);
  EXPECT_EQ(drop_pages(fixture, sequence, policy, 32), 5u);
  EXPECT_EQ(fixture.cache().blocks_available(), 5u);
  Sequence other = fixture.run(counting(100, 20));
  EXPECT_EQ(other.blocks_held(), 5u);
  EXPECT_EQ(fixture.matched(scope, counting(1, 33)), 8u) << "up to the first block that left";
  ASSERT_TRUE(sequence.holds(0, 0) && sequence.holds(0, 1) && sequence.holds(0, 7));
}

TEST(DroppedPages, MemoryStaysFlatOverALongAnswer) {
  for (const std::uint32_t recent : {1u, 6u, 15u}) {
    CacheFixture fixture(CacheFixture::small(8));
    const KvPolicy policy = h2o(16, recent);
    Sequence sequence = run_selecting(fixture, selecting_scope(fixture, policy), counting(1, 20));
    std::uint64_t most = 0;
    for (std::uint32_t token = 21; token < 2000; ++token) {
      drop_pages(fixture, sequence, policy, 20);
      ASSERT_TRUE(fixture.feed(sequence, counting(token, 1))) << token;
      most = std::max(most, sequence.blocks_held());
    }
    EXPECT_LE(most, 7u);
    EXPECT_EQ(sequence.tokens_computed(), 1999u);
    fixture.cache().close(sequence);
    fixture.cache().check();
    EXPECT_EQ(fixture.cache().blocks_available(), 8u);
  }
}

TEST(DroppedPages, OfAForkAreItsOwn) {
  CacheFixture fixture(CacheFixture::small(32));
  const KvPolicy policy = h2o(16, 4);
  Sequence leader = run_selecting(fixture, selecting_scope(fixture, policy), counting(1, 30));
  drop_pages(fixture, leader, policy, 30);
  Sequence twin = fixture.cache().fork(leader);
  EXPECT_EQ(twin.tokens_computed(), 30u);
  EXPECT_EQ(twin.blocks_held(), leader.blocks_held());
  ASSERT_TRUE(fixture.feed(leader, counting(31, 5)));
  ASSERT_TRUE(fixture.feed(twin, counting(91, 5)));
  twin.selection()->counters(0, 35)[0] = 0;
  for (std::uint64_t i = 0; i < 4; ++i) twin.selection()->counters(0, 35)[i] = 0;
  const BlockId first = leader.table(0)[0];
  drop_pages(fixture, twin, policy, 30);
  EXPECT_FALSE(twin.holds(0, 0));
  EXPECT_TRUE(leader.holds(0, 0));
  EXPECT_EQ(fixture.cache().pool().references(first), 1u);
  fixture.cache().close(leader);
  fixture.cache().close(twin);
  fixture.cache().check();
  EXPECT_EQ(fixture.cache().blocks_available(), 32u);
}

TEST(DroppedPages, AreThoseOfGroupsWithoutAWindow) {
  CacheOptions options = CacheFixture::small(64);
  options.groups = {{}, {.window = 9}, {}};
  CacheFixture fixture(options);
  const KvPolicy policy = h2o(16, 4);
  Sequence sequence = run_selecting(fixture, selecting_scope(fixture, policy), counting(1, 30));
  EXPECT_EQ(drop_pages(fixture, sequence, policy, 30), 8u);
  EXPECT_EQ(sequence.selection()->tokens_dropped(0), 16u);
  EXPECT_EQ(sequence.selection()->tokens_dropped(1), 0u);
  EXPECT_EQ(sequence.selection()->tokens_dropped(2), 16u);
  EXPECT_TRUE(sequence.holds(1, 6) && !sequence.holds(1, 0));
  for (std::uint32_t token = 31; token < 80; ++token) {
    ASSERT_TRUE(fixture.feed(sequence, counting(token, 1)));
    drop_pages(fixture, sequence, policy, 30);
  }
  EXPECT_LE(sequence.blocks_held(), 5u + 4u + 5u);
}

// All that select pages share what they have before the first drop; nobody else does.
TEST(DroppedPages, RowsBeforeThemAreSharedByAllThatSelectPages) {
  CacheFixture fixture(CacheFixture::small(64));
  fixture.serve(selecting_scope(fixture, h2o(16, 4)), counting(1, 20));
  EXPECT_EQ(fixture.matched(selecting_scope(fixture, h2o(16, 4)), counting(1, 21)), 20u);
  EXPECT_EQ(fixture.matched(selecting_scope(fixture, snapkv(99, 4, 5)), counting(1, 21)), 20u);
  EXPECT_EQ(fixture.matched(counting(1, 21)), 0u);
  EXPECT_EQ(fixture.matched(selecting_scope(fixture, {.window = 50}), counting(1, 21)), 0u);
  EXPECT_EQ(fixture.explain(fixture.everyone(), counting(1, 21)).reason, MissReason::kOtherPolicy);
}

TEST(ObservedTokens, EndAMatchAndExplainIt) {
  CacheFixture fixture(CacheFixture::small(64));
  const KvPolicy policy = snapkv(8, 4, 5);
  fixture.serve(selecting_scope(fixture, policy), counting(1, 30));
  const CacheScope scope = selecting_scope(fixture, policy, 17);
  EXPECT_EQ(fixture.matched(scope, counting(1, 21)), 17u);
  const Explanation why = fixture.explain(scope, counting(1, 21));
  EXPECT_EQ(why.reason, MissReason::kObserved);
  EXPECT_EQ(why.prompt_tokens, 21u);
  EXPECT_EQ(why.tokens_reachable, 17u);
  EXPECT_EQ(fixture.matched(scope, counting(1, 12)), 11u) << "a shorter prompt as ever";
  EXPECT_EQ(fixture.explain(scope, counting(1, 12)).reason, MissReason::kNone);
  // What ends a match before is explained as ever.
  const Explanation differs = fixture.explain(scope, counting(1, 10) + counting(50, 15));
  EXPECT_EQ(differs.reason, MissReason::kDiffers);
  EXPECT_EQ(differs.tokens_reachable, 10u);
  EXPECT_EQ(fixture.matched(selecting_scope(fixture, policy, 0), counting(1, 21)), 0u);
}

}  // namespace
}  // namespace pagoda::kv
