// check() names what is broken: each invariant of src/kv/README.md is broken once, by force.
#include <gtest/gtest.h>

#include "kv/cache_fixture.h"

namespace pagoda::kv {
namespace {

// An explicit instantiation may name private members: so tests reach them, and nothing else can.
template <class Tag, auto kMember>
struct Reach {
  friend auto member_of(Tag /*tag*/) { return kMember; }
};

#define REACH(Tag, Member)      \
  struct Tag {                  \
    friend auto member_of(Tag); \
  };                            \
  template struct Reach<Tag, &Member>

REACH(PoolRecords, BlockPool::records_);
REACH(PoolFreeLists, BlockPool::first_free_);
REACH(PoolFree, BlockPool::blocks_free_);
REACH(PoolIdle, BlockPool::blocks_idle_);
REACH(TreeNodes, PrefixTree::nodes_);
REACH(TreeTokens, PrefixTree::tokens_);
REACH(TreeBranches, PrefixTree::branches_);
REACH(TreeLive, PrefixTree::nodes_live_);
REACH(CachePool, Cache::pool_);
REACH(CacheTree, Cache::tree_);
REACH(CacheEvictor, Cache::evictor_);
REACH(EvictorCandidates, Evictor::candidates_);
REACH(EvictorGuards, Evictor::guards_);
REACH(CandidatesCreated, EvictionCandidates::created_);
REACH(CacheSalts, Cache::salts_);
REACH(GuardsNodes, Guards::nodes_);
REACH(GuardsBlocks, Guards::blocks_);

// Blocks 0 and 1 are nodes 1 and 2, idle, one below the other, and node 2 is private; block 2 is
// node 3, the partial block [7 8] that a sequence fills; blocks 3 and 4 are nodes 4 and 5, the idle
// partial blocks [50 51] and [7 51]; blocks 5 to 7 are free, the first of lanes 2, 1 and 0. The
// public children of the root part at their first token, two of them again at the second.
struct Sound {
  Sound() : fixture(CacheFixture::small(8)), sequence(start(fixture)) {
    fixture.serve(tokens_of({50, 51}));
    fixture.serve(tokens_of({7, 51}));
  }

  static Sequence start(CacheFixture& fixture) {
    fixture.serve(fixture.tenant("a", 4), counting(1, 8));
    return fixture.run(tokens_of({7, 8}));
  }

  BlockPool& pool() { return fixture.cache().*member_of(CachePool{}); }
  PrefixTree& tree() { return fixture.cache().*member_of(CacheTree{}); }
  SaltTable& salts() { return fixture.cache().*member_of(CacheSalts{}); }
  Guards& guards() {
    return fixture.cache().*member_of(CacheEvictor{}).*member_of(EvictorGuards{});
  }
  auto& guard(std::uint32_t node) { return (guards().*member_of(GuardsNodes{}))[node]; }
  std::uint64_t& blocks_guarded() { return guards().*member_of(GuardsBlocks{}); }
  auto& record(std::uint32_t block) { return (pool().*member_of(PoolRecords{}))[block]; }
  std::uint32_t& first_free(std::uint32_t lane) {
    return (pool().*member_of(PoolFreeLists{}))[lane];
  }
  std::uint32_t& blocks_free() { return pool().*member_of(PoolFree{}); }
  std::uint32_t& blocks_idle() { return pool().*member_of(PoolIdle{}); }
  std::uint32_t& nodes_live() { return tree().*member_of(TreeLive{}); }
  auto& node(std::uint32_t number) { return (tree().*member_of(TreeNodes{}))[number]; }
  TokenId& token(std::uint32_t node, std::uint32_t index) {
    return (tree().*member_of(TreeTokens{}))[node * 4 + index];
  }
  auto& branch(std::uint32_t number) { return (tree().*member_of(TreeBranches{}))[number]; }

  CacheFixture fixture;
  Sequence sequence;
};

struct Breakage {
  const char* what;
  const char* rule;  // the beginning of what check() says
  void (*apply)(Sound& sound);
};

const Breakage kBreakages[] = {
    {"an idle block with a reference", "B1", [](Sound& s) { ++s.record(0).word; }},
    {"a filling block without", "B1", [](Sound& s) { --s.record(2).word; }},
    {"a free block with one", "B1", [](Sound& s) { ++s.record(5).word; }},
    {"one free block less", "B2", [](Sound& s) { --s.blocks_free(); }},
    {"one idle block more", "B3", [](Sound& s) { ++s.blocks_idle(); }},
    {"a short free list", "B4: .*every free block", [](Sound& s) { s.first_free(2) = UINT32_MAX; }},
    {"an idle block in it", "B4: .*hold free blocks", [](Sound& s) { s.first_free(2) = 0; }},
    {"a block on two lists", "B4: .*ends", [](Sound& s) { s.record(5).link = 6; }},
    {"a ring", "B4: .*ends", [](Sound& s) { s.record(7).link = 7; }},
    {"the wrong lane", "B4", [](Sound& s) { s.first_free(3) = 5, s.first_free(2) = UINT32_MAX; }},
    {"a page too many", "T1", [](Sound& s) { ++s.node(1).pages; }},
    {"a depth too large", "T2", [](Sound& s) { ++s.node(2).depth; }},
    {"a dead parent", "T2", [](Sound& s) { s.node(1).live = false; }},
    {"one node more", "T2", [](Sound& s) { ++s.nodes_live(); }},
    {"a child too many", "T3", [](Sound& s) { ++s.node(1).children; }},
    {"another's child", "T3", [](Sound& s) { s.node(2).parent = 0, s.node(2).depth = 1; }},
    {"a child that begins another", "T4", [](Sound& s) { s.node(5).tokens = 1; }},
    {"twice the same child", "T5: .*by its tokens", [](Sound& s) { s.token(5, 1) = TokenId(8); }},
    {"a child under a wrong token", "T5: .*by its tokens",
     [](Sound& s) { s.token(4, 0) = TokenId(61); }},
    {"a child below no branch", "T5: .*branch above",
     [](Sound& s) { s.node(3).branch_above = UINT32_MAX; }},
    {"a way too many", "T5: .*its edges", [](Sound& s) { ++s.branch(0).ways; }},
    {"other labels", "T5: .*its edges", [](Sound& s) { ++s.branch(1).labels; }},
    {"a branch too deep", "T5: .*by its tokens", [](Sound& s) { ++s.branch(1).tokens; }},
    {"a wrong first child", "T6", [](Sound& s) { s.branch(1).first = 3; }},
    {"an idle block of no node", "C1", [](Sound& s) { s.record(1).link = UINT32_MAX; }},
    {"a block of a node with another page", "C2", [](Sound& s) { s.record(1).link = 1; }},
    {"an evictable block out of the queue", "C3",
     [](Sound& s) { s.pool().set_queued(BlockId(1), false); }},
    {"a public block too many", "C4", [](Sound& s) { s.salts().charge(kPublic); }},
    {"a private block too few", "C4", [](Sound& s) { s.salts().discharge(SaltId(1)); }},
    {"a guarded block too many", "C5", [](Sound& s) { ++s.blocks_guarded(); }},
    {"a held node that is not guarded", "C5", [](Sound& s) { s.guard(3).is_guarded = false; }},
    {"an idle block of a retired region", "C8", [](Sound& s) { s.salts().retire(kNoOwner); }},
};

TEST(Check, IsContentWithASoundCache) {
  Sound sound;
  sound.fixture.cache().check();
  EXPECT_EQ(sound.pool().state(BlockId(1)), BlockState::kIdle);
  EXPECT_EQ(sound.pool().state(BlockId(2)), BlockState::kFilling);
  EXPECT_EQ(sound.pool().owner(BlockId(2)), NodeId(3));
  EXPECT_EQ(sound.pool().owner(BlockId(3)), NodeId(4));
  EXPECT_FALSE(sound.pool().queued(BlockId(0))) << "it has a child: it may not go yet";
}

TEST(Metadata, WhenABlockWasFilledIsKeptOnlyForPoliciesThatReadIt) {
  const Cache lru({.blocks = 6, .policy = &lru_policy()});
  const Cache fifo({.blocks = 6, .policy = &fifo_policy()});
  const auto created = [](const Cache& cache) {
    const Evictor& evictor = cache.*member_of(CacheEvictor{});
    return (evictor.*member_of(EvictorCandidates{}).*member_of(CandidatesCreated{})).size();
  };
  EXPECT_EQ(created(lru), 0u);
  EXPECT_EQ(created(fifo), 6u);
}

TEST(Check, NamesWhatIsBroken) {
  Sound sound;
  for (const Breakage& breakage : kBreakages) {
    EXPECT_DEATH((breakage.apply(sound), sound.fixture.cache().check()), breakage.rule)
        << breakage.what;
  }
}

}  // namespace
}  // namespace pagoda::kv
