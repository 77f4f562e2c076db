#include <gtest/gtest.h>

#include "kv/cache_fixture.h"
#include "kv/cache_snapshot.h"

namespace pagoda::kv {
namespace {

std::vector<std::uint32_t> numbers(const Tokens& tokens) {
  std::vector<std::uint32_t> numbers;
  for (const TokenId token : tokens) numbers.push_back(token.value());
  return numbers;
}

class BranchViewTest : public testing::Test {
 protected:
  BranchView view(std::optional<NodeId> node = std::nullopt, const BranchLimits& limits = {}) {
    const std::vector<NodeId> leaving = fixture_.cache().eviction_candidates(8);
    return view_branch(fixture_.cache(), node, leaving, limits).value();
  }

  static CacheOptions options() {
    CacheOptions options = CacheFixture::small(64);
    options.eviction_records_max = 100;
    return options;
  }

  CacheFixture fixture_{options()};
};

TEST_F(BranchViewTest, TheTopHasTheLargestBranchesFirst) {
  fixture_.serve(counting(200, 4));
  fixture_.serve(counting(0, 8) + counting(50, 4));
  fixture_.serve(counting(0, 8) + counting(60, 8));
  const BranchView top = view();
  EXPECT_FALSE(top.branch);
  EXPECT_TRUE(top.above.empty());
  ASSERT_EQ(top.below.size(), 2u);
  EXPECT_EQ(top.below_all, 2u);
  EXPECT_EQ(top.nodes, top.nodes_seen);
  EXPECT_EQ(top.below[0].tokens, numbers(counting(0, 8)));
  EXPECT_EQ(top.below[0].tokens_own, 8u);
  EXPECT_EQ(top.below[0].blocks_own, 2u);
  EXPECT_EQ(top.below[0].blocks, 2u + 1u + 2u);
  EXPECT_EQ(top.below[0].branches, 2u);
  EXPECT_EQ(top.below[1].tokens, numbers(counting(200, 4)));
}

TEST_F(BranchViewTest, ABranchIsWalkedDownAndKnowsItsWayUp) {
  fixture_.serve(counting(0, 8) + counting(50, 8) + counting(300, 4));
  fixture_.serve(counting(0, 8) + counting(50, 8) + counting(400, 4));
  fixture_.serve(counting(0, 8) + counting(60, 8));
  const BranchDetails first = view().below.front();
  const BranchView at_first = view(first.node);
  EXPECT_EQ(at_first.branch->node, first.node);
  ASSERT_EQ(at_first.below.size(), 2u);
  const BranchView at_second = view(at_first.below[0].node);
  EXPECT_EQ(at_second.branch->tokens, numbers(counting(50, 8)));
  ASSERT_EQ(at_second.above.size(), 1u);
  const BranchView at_leaf = view(at_second.below[0].node);
  ASSERT_EQ(at_leaf.above.size(), 2u);
  EXPECT_EQ(at_leaf.above[0].node, first.node);
  EXPECT_EQ(at_leaf.above[1].node, at_second.branch->node);
  EXPECT_TRUE(at_leaf.below.empty());
}

TEST_F(BranchViewTest, ANodeInTheMiddleShowsTheBranchThatItIsPartOf) {
  fixture_.serve(counting(0, 16));
  const NodeId first = view().below.front().node;
  NodeId child = first;
  fixture_.cache().tree().for_each_child(first, [&](NodeId node) { child = node; });
  ASSERT_NE(child, first);
  EXPECT_EQ(view(child).branch->node, first);
}

TEST_F(BranchViewTest, ItSaysWhoHoldsABranchAndWhenItWasUsed) {
  fixture_.serve(counting(200, 8));
  Sequence held = fixture_.run(counting(0, 12));
  fixture_.cache().advance_time(3'000'000'000);
  const BranchView top = view();
  ASSERT_EQ(top.below.size(), 2u);
  EXPECT_EQ(top.below[0].sequences, 1u);
  EXPECT_FALSE(top.below[0].idle_ns);
  EXPECT_EQ(top.below[1].sequences, 0u);
  EXPECT_EQ(top.below[1].idle_ns, 3'000'000'000);
  fixture_.cache().close(held);
}

TEST_F(BranchViewTest, WhatGoesNextHasTheFirstRank) {
  fixture_.serve(counting(0, 8) + counting(50, 4));
  fixture_.serve(counting(0, 8) + counting(60, 4));
  const std::vector<NodeId> leaving = fixture_.cache().eviction_candidates(8);
  ASSERT_EQ(leaving.size(), 2u);
  const BranchView top = view();
  ASSERT_EQ(top.below.size(), 1u);
  EXPECT_EQ(top.below[0].eviction_rank, 0u) << "what is below goes first";
  const BranchView at = view(top.below[0].node);
  for (const BranchDetails& branch : at.below) {
    EXPECT_EQ(branch.eviction_rank, branch.node == leaving[0] ? 0u : 1u);
  }
}

TEST_F(BranchViewTest, PrivateTokensAreNotShownAndBeginABranch) {
  fixture_.serve(counting(0, 8));
  fixture_.serve(fixture_.tenant("salt"), counting(0, 8) + counting(70, 8));
  const BranchView top = view();
  ASSERT_EQ(top.below.size(), 1u);
  EXPECT_EQ(top.below[0].tokens, numbers(counting(0, 8)));
  const BranchView at = view(top.below[0].node);
  ASSERT_EQ(at.below.size(), 1u);
  EXPECT_FALSE(at.below[0].is_public);
  EXPECT_TRUE(at.below[0].tokens.empty());
  EXPECT_EQ(at.below[0].tokens_own, 8u);
  EXPECT_EQ(view(at.below[0].node).branch->node, at.below[0].node);
}

TEST_F(BranchViewTest, LimitsBoundWhatIsShown) {
  for (std::uint32_t i = 0; i < 20; ++i) fixture_.serve(counting(100 * i, 8));
  const BranchView few = view(std::nullopt, {.below_max = 5, .tokens_max = 3});
  EXPECT_EQ(few.below.size(), 5u);
  EXPECT_EQ(few.below_all, 20u);
  EXPECT_EQ(few.below[0].tokens.size(), 3u);
  const BranchView part = view(std::nullopt, {.nodes_max = 8});
  EXPECT_LT(part.nodes_seen, part.nodes);
  EXPECT_LT(part.below_all, 20u);
}

TEST_F(BranchViewTest, OfALongWayUpTheMiddleIsLeftOut) {
  constexpr std::uint32_t kForks = 9;
  for (std::uint32_t i = 1; i <= kForks; ++i) {
    fixture_.serve(counting(0, 4 * i) + counting(1000 * i, 4));
  }
  fixture_.serve(counting(0, 4 * kForks + 4));
  // The deepest block of the common prompt goes on from every fork.
  std::vector<NodeId> way = {view().below.front().node};
  while (true) {
    std::optional<NodeId> next;
    for (const BranchDetails& branch : view(way.back()).below) {
      if (branch.tokens.front() < 1000) next = branch.node;
    }
    if (!next) break;
    way.push_back(*next);
  }
  ASSERT_EQ(way.size(), kForks + 1);
  const BranchView all = view(way.back());
  EXPECT_EQ(all.above.size(), kForks);
  EXPECT_EQ(all.above_all, kForks);
  const BranchView few = view(way.back(), {.above_max = 4});
  EXPECT_EQ(few.above_all, kForks);
  std::vector<NodeId> shown;
  for (const BranchDetails& branch : few.above) shown.push_back(branch.node);
  EXPECT_EQ(shown, (std::vector<NodeId>{way[0], way[1], way[kForks - 2], way[kForks - 1]}));
}

TEST_F(BranchViewTest, WhatIsNoBranchIsNothing) {
  fixture_.serve(counting(0, 8));
  const NodeId node = view().below.front().node;
  EXPECT_FALSE(view_branch(fixture_.cache(), NodeId(9999), {}, {}));
  for (const auto& [name, space] : fixture_.cache().namespaces()) {
    EXPECT_FALSE(view_branch(fixture_.cache(), space.root, {}, {}));
  }
  fixture_.cache().clear();
  EXPECT_FALSE(view_branch(fixture_.cache(), node, {}, {}));
}

}  // namespace
}  // namespace pagoda::kv
