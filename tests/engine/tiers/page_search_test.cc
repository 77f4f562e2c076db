// Compares how far stores reach together with the definition, which tries every end from the
// farthest.
#include "engine/tiers/page_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace pagoda::engine {
namespace {

using kv::memory::AttentionSpec;

struct Held {
  std::vector<std::set<std::pair<std::uint64_t, std::uint32_t>>> pages;  // [store]: block, group

  // True: one store has all of these groups of the block.
  bool together(std::uint64_t block, const std::vector<std::uint32_t>& groups) const {
    return std::any_of(pages.begin(), pages.end(), [&](const auto& store) {
      return std::all_of(groups.begin(), groups.end(), [&](std::uint32_t group) {
        return store.contains({block, group});
      });
    });
  }
};

kv::BlockHash name_of(std::uint64_t block) {
  kv::BlockHash name = {};
  name.digest[0] = static_cast<std::byte>(block);
  return name;
}

std::uint64_t farthest_end(const Held& held, const std::vector<AttentionSpec>& groups,
                           std::uint32_t block_tokens, std::uint64_t blocks, std::uint64_t first) {
  for (std::uint64_t end = blocks; end > first; --end) {
    bool all = true;
    for (std::uint64_t block = first; block < end; ++block) {
      std::vector<std::uint32_t> full;
      std::vector<std::uint32_t> windows;
      for (std::uint32_t group = 0; group < groups.size(); ++group) {
        // A query at position end * block_tokens sees itself and window - 1 before it.
        const std::uint64_t last = (block + 1) * block_tokens - 1;
        const std::uint64_t window = groups[group].window;
        if (window == 0) full.push_back(group);
        const bool is_sink = block * block_tokens < groups[group].sinks;
        if (window != 0 && (is_sink || last + window > end * block_tokens))
          windows.push_back(group);
      }
      all = all && held.together(block, full) && held.together(block, windows);
    }
    if (all) return end;
  }
  return first;
}

TEST(PageSearch, FindsTheFarthestEndAndWhereItsPagesAre) {
  const std::vector<std::vector<AttentionSpec>> shapes = {
      {{}},
      {{}, {.window = 5}},
      {{.window = 7}},
      {{.window = 3}, {}, {.window = 9}},
      {{.window = 6, .sinks = 3}},
      {{.window = 9, .sinks = 5}, {.window = 3}}};
  std::uint64_t reached = 0;
  for (std::uint64_t trial = 0; trial < 20000; ++trial) {
    auto draw = [&, count = 0ull](std::uint64_t below) mutable {
      return random_bits(trial, 3, count++) % below;
    };
    const std::vector<AttentionSpec>& groups = shapes[draw(shapes.size())];
    const std::uint32_t block_tokens = draw(2) == 0 ? 1 : 4;
    const std::uint64_t blocks = 1 + draw(12);
    const std::uint64_t first = draw(blocks);
    const std::uint64_t missing = 2 + draw(20);  // one page of so many is missing
    Held held;
    held.pages.resize(1 + draw(3));
    for (auto& store : held.pages) {
      for (std::uint64_t block = 0; block < blocks; ++block) {
        for (std::uint32_t group = 0; group < groups.size(); ++group) {
          if (draw(missing) != 0) store.insert({block, group});
        }
      }
    }
    std::vector<kv::BlockHash> names;
    for (std::uint64_t block = 0; block < blocks; ++block) names.push_back(name_of(block));
    PageSearch search(
        {.space = {}, .groups = groups, .block_tokens = block_tokens, .stores = held.pages.size()},
        names, first);
    int lookups = 0;
    while (const auto lookup = search.next()) {
      ASSERT_LT(++lookups, 200);
      std::size_t found = 0;
      for (const kv::PageKey& key : lookup->keys) {
        const auto block = std::to_integer<std::uint64_t>(key.hash.digest[0]);
        if (!held.pages[lookup->store].contains({block, key.group})) break;
        ++found;
      }
      search.record_found(found);
    }
    const std::uint64_t end = farthest_end(held, groups, block_tokens, blocks, first);
    ASSERT_EQ(search.end(), end) << trial;
    reached += end - first;
    for (std::uint32_t group = 0; group < groups.size(); ++group) {
      std::uint64_t block =
          kv::memory::first_block_kept(groups[group], end * block_tokens, block_tokens);
      for (block = std::max(block, first); block < end; ++block) {
        ASSERT_TRUE(held.pages[search.store_of(block, group)].contains({block, group})) << trial;
      }
    }
  }
  EXPECT_GT(reached, 20000u);
}

// The next turn of a conversation is longer than the gaps that a search takes from its end.
TEST(PageSearch, FindsWhereAShorterPromptEndedWithoutAFullGroup) {
  for (const AttentionSpec& spec :
       {AttentionSpec{.window = 9}, AttentionSpec{.window = 6, .sinks = 5}}) {
    const std::vector<AttentionSpec> groups = {spec, spec};
    std::vector<kv::BlockHash> names;
    for (std::uint64_t block = 0; block < 80; ++block) names.push_back(name_of(block));
    for (const std::uint64_t stored : {1u, 20u, 40u}) {
      PageSearch search({.space = {}, .groups = groups, .block_tokens = 4, .stores = 2}, names, 0);
      while (const std::optional<PageSearch::Lookup> lookup = search.next()) {
        std::size_t found = 0;
        for (const kv::PageKey& key : lookup->keys) {
          const auto block = static_cast<std::uint64_t>(key.hash.digest[0]);
          if (lookup->store != 1 || block >= stored) break;
          ++found;
        }
        search.record_found(found);
      }
      EXPECT_EQ(search.end(), stored) << spec.window;
      EXPECT_EQ(search.store_of(stored - 1, 1), 1);
    }
  }
}

}  // namespace
}  // namespace pagoda::engine
