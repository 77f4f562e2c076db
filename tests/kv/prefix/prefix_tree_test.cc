#include "kv/prefix/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"

namespace pagoda::kv {
namespace {

using Tokens = std::vector<TokenId>;

Tokens tokens_of(std::initializer_list<std::uint32_t> values) {
  Tokens tokens;
  for (const std::uint32_t value : values) tokens.emplace_back(value);
  return tokens;
}

std::size_t shared_beginning(const Tokens& a, const Tokens& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

bool begins_with(const Tokens& longer, const Tokens& shorter) {
  return shared_beginning(longer, shorter) == shorter.size();
}

// The simplest tree there is: every class a sorted map, searched by looking at all of it.
class NaiveTree {
 public:
  using Class = std::map<Tokens, NodeId>;

  Class& children(NodeId parent, SaltId salt) { return classes_[{parent, salt}]; }

  bool fits(NodeId parent, SaltId salt, const Tokens& tokens) {
    const Class& list = children(parent, salt);
    return std::none_of(list.begin(), list.end(), [&](const auto& child) {
      return begins_with(child.first, tokens) || begins_with(tokens, child.first);
    });
  }

  std::size_t longest(NodeId parent, SaltId salt, const Tokens& tokens) {
    std::size_t longest = 0;
    for (const auto& [child, node] : children(parent, salt)) {
      longest = std::max(longest, shared_beginning(child, tokens));
    }
    return longest;
  }

 private:
  std::map<std::pair<NodeId, SaltId>, Class> classes_;
};

class RandomTree {
 public:
  explicit RandomTree(std::uint64_t seed)
      : seed_(seed), tree_({.block_tokens = 3, .groups = 2, .hash_seed = seed}) {
    parents_ = {tree_.add_root(), tree_.add_root()};
  }

  void step() {
    const NodeId parent = parents_[random(parents_.size())];
    SaltId salt(static_cast<std::uint32_t>(random(3)));
    if (tree_.region(parent) != kPublic) salt = tree_.region(parent);
    NaiveTree::Class& children = naive_.children(parent, salt);
    const std::uint64_t dice = random(10);
    if (dice < 5) {
      insert(parent, salt, random_tokens(1 + random(3)));
    } else if (dice < 7 && !children.empty()) {
      const auto at =
          std::next(children.begin(), static_cast<std::ptrdiff_t>(random(children.size())));
      extend(parent, salt, at->first, at->second);
    } else if (dice < 8 && !children.empty()) {
      const auto at =
          std::next(children.begin(), static_cast<std::ptrdiff_t>(random(children.size())));
      if (!tree_.is_bare(at->second)) return;
      tree_.erase(at->second);
      std::erase(parents_, at->second);
      children.erase(at);
    } else {
      look(parent, salt, random_tokens(1 + random(4)));
    }
    tree_.check();
  }

 private:
  std::uint64_t random(std::uint64_t bound) { return random_bits(seed_, 0, draws_++) % bound; }

  Tokens random_tokens(std::uint64_t count) {
    Tokens tokens;
    for (std::uint64_t i = 0; i < count; ++i) {
      tokens.emplace_back(static_cast<std::uint32_t>(random(4)));
    }
    return tokens;
  }

  void insert(NodeId parent, SaltId salt, const Tokens& tokens) {
    if (!naive_.fits(parent, salt, tokens)) return;
    const NodeId node = tree_.insert(parent, salt, tokens);
    naive_.children(parent, salt).emplace(tokens, node);
    EXPECT_EQ(tree_.parent(node), parent);
    EXPECT_EQ(tree_.region(node), salt);
    EXPECT_EQ(tree_.depth(node), tree_.depth(parent) + 1);
    EXPECT_EQ(tree_.pages(node), 0u);
    EXPECT_EQ(tree_.children(node), 0u);
    EXPECT_TRUE(std::ranges::equal(tree_.tokens(node), tokens));
    EXPECT_EQ(tree_.is_whole(node), tokens.size() == 3);
    if (tokens.size() == 3 && parents_.size() < 12) parents_.push_back(node);
  }

  void extend(NodeId parent, SaltId salt, const Tokens& tokens, NodeId node) {
    if (tokens.size() == 3) return;
    const Tokens more = random_tokens(1 + random(3 - tokens.size()));
    Tokens longer = tokens;
    longer.insert(longer.end(), more.begin(), more.end());
    naive_.children(parent, salt).erase(Tokens(tokens));
    tree_.extend(node, more);
    naive_.children(parent, salt).emplace(longer, node);
    EXPECT_TRUE(std::ranges::equal(tree_.tokens(node), longer));
    if (longer.size() == 3 && parents_.size() < 12) parents_.push_back(node);
  }

  void look(NodeId parent, SaltId salt, const Tokens& tokens) {
    SearchWork work;
    const auto found = tree_.best_child(parent, salt, tokens, work);
    const std::size_t longest = naive_.longest(parent, salt, tokens);
    const NaiveTree::Class& children = naive_.children(parent, salt);
    EXPECT_LE(work.nodes_visited, children.size());
    EXPECT_LE(work.tokens_compared, 3 * work.nodes_visited);
    ASSERT_EQ(found.has_value(), longest > 0);
    if (!found) return;
    EXPECT_EQ(found->tokens_shared, longest);
    const auto named = std::find_if(children.begin(), children.end(),
                                    [&](const auto& c) { return c.second == found->node; });
    ASSERT_NE(named, children.end()) << "a child of another class or parent";
    EXPECT_EQ(shared_beginning(named->first, tokens), longest);
  }

  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  PrefixTree tree_;
  NaiveTree naive_;
  std::vector<NodeId> parents_;
};

TEST(PrefixTree, FindsWhatAScanFinds) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    RandomTree tree(seed);
    for (int step = 0; step < 300 && !testing::Test::HasFailure(); ++step) tree.step();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(PrefixTree, AClassIsOnlySeenByItsSaltAndBelowItsParent) {
  PrefixTree tree({.block_tokens = 2});
  const NodeId root = tree.add_root();
  const NodeId other_root = tree.add_root();
  const Tokens tokens = tokens_of({1, 2});
  const NodeId shared = tree.insert(root, kPublic, tokens);
  const NodeId of_1 = tree.insert(root, SaltId(1), tokens);
  const NodeId of_2 = tree.insert(root, SaltId(2), tokens);
  SearchWork work;
  EXPECT_EQ(tree.best_child(root, kPublic, tokens, work)->node, shared);
  EXPECT_EQ(tree.best_child(root, SaltId(1), tokens, work)->node, of_1);
  EXPECT_EQ(tree.best_child(root, SaltId(2), tokens, work)->node, of_2);
  EXPECT_EQ(work.nodes_visited, 3u) << "one node of one class each";
  EXPECT_FALSE(tree.best_child(root, SaltId(3), tokens, work));
  EXPECT_FALSE(tree.best_child(other_root, kPublic, tokens, work));
  EXPECT_FALSE(tree.best_child(shared, SaltId(1), tokens, work));
  EXPECT_EQ(work.nodes_visited, 3u);
  EXPECT_EQ(tree.children(root), 3u);
  std::set<NodeId> children;
  tree.for_each_child(root, [&](NodeId child) { children.insert(child); });
  EXPECT_EQ(children, (std::set<NodeId>{shared, of_1, of_2}));
  tree.check();
  tree.erase(of_1);
  EXPECT_FALSE(tree.best_child(root, SaltId(1), tokens, work));
  EXPECT_EQ(tree.best_child(root, SaltId(2), tokens, work)->node, of_2);
}

TEST(PrefixTree, ChildrenAreVisitedInOrderOfClassAndTokens) {
  PrefixTree tree({.block_tokens = 1});
  const NodeId root = tree.add_root();
  std::vector<std::pair<SaltId, Tokens>> expected;
  for (std::uint32_t salt = 0; salt < 40; ++salt) {
    for (std::uint32_t token = 0; token < 3; ++token) {
      expected.emplace_back(SaltId(salt), tokens_of({token}));
    }
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [salt, tokens] = expected[i * 37 % expected.size()];
    tree.insert(root, salt, tokens);
  }
  std::vector<std::pair<SaltId, Tokens>> visited;
  tree.for_each_child(root, [&](NodeId child) {
    const auto tokens = tree.tokens(child);
    visited.emplace_back(tree.region(child), Tokens(tokens.begin(), tokens.end()));
  });
  EXPECT_EQ(visited, expected);
}

TEST(PrefixTree, ARegionNeverChangesItsSaltAndAPartialBlockHasNoChildren) {
  PrefixTree tree({.block_tokens = 2});
  const NodeId root = tree.add_root();
  const NodeId mine = tree.insert(root, SaltId(1), tokens_of({1, 2}));
  const NodeId leaf = tree.insert(root, kPublic, tokens_of({1}));
  EXPECT_DEATH(tree.insert(mine, SaltId(2), tokens_of({3, 4})), "never changes");
  EXPECT_DEATH(tree.insert(mine, kPublic, tokens_of({3, 4})), "never changes");
  EXPECT_DEATH(tree.insert(leaf, kPublic, tokens_of({3, 4})), "partial block");
  EXPECT_DEATH(tree.insert(root, kPublic, {}), "1 to block_tokens");
  EXPECT_DEATH(tree.insert(root, kPublic, tokens_of({5, 6, 7})), "1 to block_tokens");
  EXPECT_DEATH(tree.extend(leaf, tokens_of({2, 3})), "at most block_tokens");
  EXPECT_DEATH(PrefixTree({.block_tokens = 0}), "1 to 65535 tokens");
  EXPECT_DEATH(PrefixTree({.block_tokens = 65536}), "1 to 65535 tokens");
  EXPECT_DEATH(PrefixTree({.groups = 0}), "1 to 65535 groups");
}

TEST(PrefixTree, OnlyABareNodeCanGo) {
  PrefixTree tree({.block_tokens = 1, .groups = 2});
  const NodeId root = tree.add_root();
  const NodeId node = tree.insert(root, kPublic, tokens_of({1}));
  const NodeId child = tree.insert(node, kPublic, tokens_of({2}));
  EXPECT_DEATH(tree.erase(root), "bare");
  EXPECT_DEATH(tree.erase(node), "bare") << "it has a child";
  tree.erase(child);
  tree.pin(node);
  EXPECT_DEATH(tree.erase(node), "bare") << "someone stands on it";
  tree.unpin(node);
  EXPECT_DEATH(tree.unpin(node), "pinned");
  tree.set_page(node, 1, BlockId(9));
  tree.set_page(node, 1, BlockId(8));
  EXPECT_EQ(tree.pages(node), 1u);
  EXPECT_EQ(tree.page(node, 0), std::nullopt);
  EXPECT_EQ(tree.page(node, 1), BlockId(8));
  EXPECT_DEATH(tree.erase(node), "bare") << "it has a page";
  tree.set_page(node, 1, std::nullopt);
  EXPECT_EQ(tree.nodes(), 2u);
  tree.erase(node);
  EXPECT_EQ(tree.nodes(), 1u);
  EXPECT_EQ(tree.insert(root, kPublic, tokens_of({7})), node) << "its number is used again";
  tree.check();
}

// What a search costs says nothing of the past: not in which order children came, nor how they
// grew, nor who was there before.
TEST(PrefixTree, TheShapeOfAClassIsAFunctionOfItsMembers) {
  const PrefixTreeOptions options = {.block_tokens = 4, .hash_seed = 8};
  std::set<Tokens> members;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const std::uint64_t bits = random_bits(6, 0, i);
    Tokens tokens;
    for (int t = 0; t < 4; ++t) {
      tokens.emplace_back(static_cast<std::uint32_t>(bits >> 8 * t & 15));
    }
    members.insert(tokens);
  }
  PrefixTree sorted(options);
  const NodeId root = sorted.add_root();
  for (const Tokens& tokens : members) sorted.insert(root, kPublic, tokens);

  PrefixTree grown(options);
  ASSERT_EQ(grown.add_root(), root);
  std::vector<NodeId> passing;
  for (std::uint32_t i = 0; i < 50; ++i) {
    passing.push_back(grown.insert(root, kPublic, tokens_of({100 + i % 7, i})));
  }
  for (auto at = members.rbegin(); at != members.rend(); ++at) {
    // Grows token by token from where it parts from those that are there already.
    SearchWork work;
    const auto nearest = grown.best_child(root, kPublic, *at, work);
    const std::size_t first = nearest ? nearest->tokens_shared + 1 : 1;
    const NodeId node = grown.insert(root, kPublic, std::span(*at).first(first));
    for (std::size_t t = first; t < 4; ++t) grown.extend(node, std::span(*at).subspan(t, 1));
  }
  for (const NodeId node : passing) grown.erase(node);
  grown.check();

  for (const Tokens& tokens : members) {
    SearchWork work_sorted;
    SearchWork work_grown;
    ASSERT_TRUE(sorted.best_child(root, kPublic, tokens, work_sorted));
    ASSERT_TRUE(grown.best_child(root, kPublic, tokens, work_grown));
    EXPECT_EQ(work_sorted.nodes_visited, work_grown.nodes_visited);
    EXPECT_EQ(work_sorted.tokens_compared, work_grown.tokens_compared);
  }
}

// A root with many children, whose tokens differ where `place` says and are otherwise equal.
struct Crowd {
  const char* name;
  std::uint64_t steps_max;  // from the first place where children part to a child
  Tokens (*tokens)(std::uint32_t child);
};

Tokens at_place(std::size_t place, std::uint32_t value) {
  Tokens tokens(16, TokenId(11));
  tokens[place] = TokenId(value);
  return tokens;
}

const std::vector<Crowd>& crowds() {
  static const std::vector<Crowd> kCrowds = {
      {"FirstTokenCounts", 2, [](std::uint32_t i) { return at_place(0, i); }},
      {"LastTokenCounts", 2, [](std::uint32_t i) { return at_place(15, i); }},
      {"StridesOf4096", 2, [](std::uint32_t i) { return at_place(15, i << 12); }},
      {"TwoTokensCount", 3,
       [](std::uint32_t i) {
         Tokens tokens = at_place(7, i / 1000);
         tokens[8] = TokenId(i % 1000);
         return tokens;
       }},
      {"RandomTokens", 17,  // one a token, and the child
       [](std::uint32_t i) {
         const std::uint64_t bits = random_bits(5, 0, i);
         Tokens tokens;
         for (std::uint32_t t = 0; t < 16; ++t) {
           tokens.emplace_back(static_cast<std::uint32_t>(bits >> 3 * t & 0x1FFFF));
         }
         return tokens;
       }},
  };
  return kCrowds;
}

class AMillionChildren : public testing::TestWithParam<std::size_t> {};

TEST_P(AMillionChildren, AreFoundInAFewSteps) {
  constexpr std::uint32_t kChildren = 1'000'000;
  const Crowd& crowd = crowds()[GetParam()];
  PrefixTree tree({.block_tokens = 16, .hash_seed = 3 * 0x123456789ABCDEFu});
  const NodeId root = tree.add_root();
  std::vector<NodeId> nodes;
  for (std::uint32_t i = 0; i < kChildren; ++i) {
    nodes.push_back(tree.insert(root, kPublic, crowd.tokens(i)));
  }
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < kChildren; i += 13) {
    SearchWork work;
    const auto found = tree.best_child(root, kPublic, crowd.tokens(i), work);
    ASSERT_TRUE(found && found->node == nodes[i] && found->tokens_shared == 16);
    most = std::max(most, work.nodes_visited);
  }
  EXPECT_LE(most, crowd.steps_max);
  // Half of a block, and a block whose last token nobody has.
  for (std::uint32_t i = 0; i < kChildren; i += 4999) {
    SearchWork work;
    Tokens half = crowd.tokens(i);
    half.resize(8);
    EXPECT_EQ(tree.best_child(root, kPublic, half, work)->tokens_shared, 8u);
    Tokens stranger = crowd.tokens(i);
    stranger[15] = TokenId(UINT32_MAX);
    EXPECT_EQ(tree.best_child(root, kPublic, stranger, work)->tokens_shared, 15u);
    EXPECT_LE(work.nodes_visited, 2 * crowd.steps_max);
  }
}

INSTANTIATE_TEST_SUITE_P(Crowds, AMillionChildren, testing::Range<std::size_t>(0, 5),
                         [](const auto& test) { return std::string(crowds()[test.param].name); });

}  // namespace
}  // namespace pagoda::kv
