// check() names what is broken: each invariant of src/kv/README.md is broken once, by force.
#include <gtest/gtest.h>

#include "kv/cache_desk.h"

namespace pagoda::kv {
namespace {

// An explicit instantiation may name private members: so tests reach them, and nothing else can.
template <class Tag, auto kMember>
struct Reach {
  friend auto member_of(Tag /*tag*/) { return kMember; }
};

struct PoolRecords {
  friend auto member_of(PoolRecords tag);
};
struct PoolFreeLists {
  friend auto member_of(PoolFreeLists tag);
};
struct PoolFree {
  friend auto member_of(PoolFree tag);
};
struct PoolIdle {
  friend auto member_of(PoolIdle tag);
};
struct TreeNodes {
  friend auto member_of(TreeNodes tag);
};
struct TreeTokens {
  friend auto member_of(TreeTokens tag);
};
struct TreeBranches {
  friend auto member_of(TreeBranches tag);
};
struct TreeLive {
  friend auto member_of(TreeLive tag);
};
struct CachePool {
  friend auto member_of(CachePool tag);
};
struct CacheTree {
  friend auto member_of(CacheTree tag);
};
struct CacheCreated {
  friend auto member_of(CacheCreated tag);
};
struct CacheCharged {
  friend auto member_of(CacheCharged tag);
};

template struct Reach<PoolRecords, &BlockPool::records_>;
template struct Reach<PoolFreeLists, &BlockPool::first_free_>;
template struct Reach<PoolFree, &BlockPool::blocks_free_>;
template struct Reach<PoolIdle, &BlockPool::blocks_idle_>;
template struct Reach<TreeNodes, &PrefixTree::nodes_>;
template struct Reach<TreeTokens, &PrefixTree::tokens_>;
template struct Reach<TreeBranches, &PrefixTree::branches_>;
template struct Reach<TreeLive, &PrefixTree::nodes_live_>;
template struct Reach<CachePool, &Cache::pool_>;
template struct Reach<CacheTree, &Cache::tree_>;
template struct Reach<CacheCreated, &Cache::created_>;
template struct Reach<CacheCharged, &Cache::charged_>;

// Blocks 0 and 1 are nodes 1 and 2, idle, one below the other; block 2 is node 3, an open leaf that
// a sequence fills; blocks 3 to 5 are free.
class Check : public testing::Test {
 protected:
  Check() : desk_(Desk::small(6)), sequence_(start(desk_)) {}

  static Sequence start(Desk& desk) {
    desk.serve(desk.tenant("a", 4), counting(1, 8));
    return desk.run(tokens_of({7, 8}));
  }

  BlockPool& pool() { return desk_.cache().*member_of(CachePool{}); }
  PrefixTree& tree() { return desk_.cache().*member_of(CacheTree{}); }
  std::uint32_t& word(std::uint32_t block) {
    return (pool().*member_of(PoolRecords{}))[block].word;
  }
  std::uint32_t& link(std::uint32_t block) {
    return (pool().*member_of(PoolRecords{}))[block].link;
  }
  std::uint32_t& first_free(std::uint32_t lane) {
    return (pool().*member_of(PoolFreeLists{}))[lane];
  }
  auto& node(std::uint32_t number) { return (tree().*member_of(TreeNodes{}))[number]; }
  auto& branches() { return tree().*member_of(TreeBranches{}); }
  void check() { desk_.cache().check(); }

  Desk desk_;
  Sequence sequence_;
};

TEST_F(Check, IsContentWithASoundCache) {
  check();
  EXPECT_EQ(pool().state(BlockId(1)), BlockState::kIdle);
  EXPECT_EQ(pool().state(BlockId(2)), BlockState::kFilling);
  EXPECT_EQ(pool().owner(BlockId(2)), NodeId(3));
}

TEST_F(Check, NoticesReferencesThatDoNotFitTheState) {
  EXPECT_DEATH((++word(0), check()), "B1") << "an idle block with a reference";
  EXPECT_DEATH((--word(2), check()), "B1") << "a filling block without";
  EXPECT_DEATH((++word(4), check()), "B1") << "a free block with one";
}

TEST_F(Check, NoticesWrongCounts) {
  EXPECT_DEATH((--(pool().*member_of(PoolFree{})), check()), "B2");
  EXPECT_DEATH((++(pool().*member_of(PoolIdle{})), check()), "B3");
}

TEST_F(Check, NoticesABrokenFreeList) {
  // Three blocks are free: 5, 4 and 3 are alone in the lanes 0, 1 and 2.
  ASSERT_EQ(first_free(2), 3u);
  EXPECT_DEATH((first_free(2) = UINT32_MAX, check()), "B4: .*every free block");
  EXPECT_DEATH((first_free(2) = 0, check()), "B4: .*hold free blocks");
  EXPECT_DEATH((link(3) = 4, check()), "B4: .*ends");
  EXPECT_DEATH((link(5) = 5, check()), "B4: .*ends");
  EXPECT_DEATH((first_free(3) = 3, first_free(2) = UINT32_MAX, check()), "B4") << "the wrong lane";
}

TEST_F(Check, NoticesWrongNodes) {
  EXPECT_DEATH((++node(1).pages, check()), "T1");
  EXPECT_DEATH((++node(2).depth, check()), "T2");
  EXPECT_DEATH((node(1).live = false, check()), "T2");
  EXPECT_DEATH((++(tree().*member_of(TreeLive{})), check()), "T2");
  EXPECT_DEATH((++node(1).children, check()), "T3");
  EXPECT_DEATH((node(2).parent = 0, node(2).depth = 1, check()), "T3");
}

TEST_F(Check, NoticesBrokenTries) {
  desk_.serve(tokens_of({7, 51}));
  desk_.serve(tokens_of({60}));
  check();
  // The public children of the root are [1 2 3 4] (node 1), [7 8] (3), [7 51] (4) and [60] (5).
  ASSERT_EQ(branches().size(), 2u) << "all part at the first token, 7 8 and 7 51 at the second";
  auto& tokens = tree().*member_of(TreeTokens{});
  EXPECT_DEATH((tokens[4 * 4 + 1] = TokenId(8), check()), "T5: .*by its tokens")
      << "twice the same";
  EXPECT_DEATH((tokens[5 * 4] = TokenId(61), check()), "T5: .*by its tokens");
  EXPECT_DEATH((node(3).branch_above = UINT32_MAX, check()), "T5: .*branch above");
  EXPECT_DEATH((++branches()[0].ways, check()), "T5: .*its edges");
  EXPECT_DEATH((++branches()[1].labels, check()), "T5: .*its edges");
  EXPECT_DEATH((++branches()[1].tokens, check()), "T5: .*by its tokens");
  EXPECT_DEATH((branches()[1].first = 3, check()), "T6: .*the first below|T6: .*a run");
  EXPECT_DEATH((node(4).tokens = 1, check()), "T4") << "7 begins 7 8";
}

TEST_F(Check, NoticesBlocksThatNodesDoNotKnow) {
  EXPECT_DEATH((link(1) = UINT32_MAX, check()), "C1") << "idle, and of no node";
  EXPECT_DEATH((link(1) = 1, check()), "C2") << "of a node that has another page";
}

TEST_F(Check, NoticesAnEvictableBlockThatIsNotQueued) {
  EXPECT_DEATH((pool().set_queued(BlockId(1), false), check()), "C3");
  EXPECT_FALSE(pool().queued(BlockId(0))) << "it has a child: it may not go yet";
}

TEST(Metadata, WhenABlockWasFilledIsKeptOnlyForPoliciesThatReadIt) {
  const Cache lru({.blocks = 6, .policy = &lru_policy()});
  const Cache fifo({.blocks = 6, .policy = &fifo_policy()});
  EXPECT_EQ((lru.*member_of(CacheCreated{})).size(), 0u);
  EXPECT_EQ((fifo.*member_of(CacheCreated{})).size(), 6u);
}

TEST_F(Check, NoticesAWrongAccount) {
  EXPECT_DEATH((++(desk_.cache().*member_of(CacheCharged{}))[0], check()), "C4");
  EXPECT_DEATH((--(desk_.cache().*member_of(CacheCharged{}))[1], check()), "C4");
}

}  // namespace
}  // namespace pagoda::kv
