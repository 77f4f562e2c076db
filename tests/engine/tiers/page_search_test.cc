// How far stores reach together, beside the definition: every end, from the farthest.
#include "engine/tiers/page_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace pagoda::engine {
namespace {

using kv::memory::LayerReach;

struct Held {
  std::vector<std::set<std::pair<std::uint64_t, std::uint32_t>>> pages;  // [store]: block, slice

  // Has one store all of these slices of the block?
  bool together(std::uint64_t block, const std::vector<std::uint32_t>& slices) const {
    return std::any_of(pages.begin(), pages.end(), [&](const auto& store) {
      return std::all_of(slices.begin(), slices.end(), [&](std::uint32_t slice) {
        return store.contains({block, slice});
      });
    });
  }
};

kv::BlockName name_of(std::uint64_t block) {
  kv::BlockName name = {};
  name.digest[0] = static_cast<std::byte>(block);
  return name;
}

std::uint64_t farthest_end(const Held& held, const std::vector<LayerReach>& slices,
                           std::uint32_t block_tokens, std::uint64_t blocks, std::uint64_t first) {
  for (std::uint64_t end = blocks; end > first; --end) {
    bool all = true;
    for (std::uint64_t block = first; block < end; ++block) {
      std::vector<std::uint32_t> full;
      std::vector<std::uint32_t> windows;
      for (std::uint32_t slice = 0; slice < slices.size(); ++slice) {
        // A query at position end * block_tokens sees itself and window - 1 before it.
        const std::uint64_t last = (block + 1) * block_tokens - 1;
        const std::uint64_t window = slices[slice].window;
        if (window == 0) full.push_back(slice);
        if (window != 0 && last + window > end * block_tokens) windows.push_back(slice);
      }
      all = all && held.together(block, full) && held.together(block, windows);
    }
    if (all) return end;
  }
  return first;
}

TEST(PageSearch, FindsTheFarthestEndAndWhereItsPagesAre) {
  const std::vector<std::vector<LayerReach>> shapes = {
      {{}}, {{}, {.window = 5}}, {{.window = 7}}, {{.window = 3}, {}, {.window = 9}}};
  std::uint64_t reached = 0;
  for (std::uint64_t trial = 0; trial < 20000; ++trial) {
    auto draw = [&, count = 0ull](std::uint64_t below) mutable {
      return random_bits(trial, 3, count++) % below;
    };
    const std::vector<LayerReach>& slices = shapes[draw(shapes.size())];
    const std::uint32_t block_tokens = draw(2) == 0 ? 1 : 4;
    const std::uint64_t blocks = 1 + draw(12);
    const std::uint64_t first = draw(blocks);
    const std::uint64_t missing = 2 + draw(20);  // one page of so many
    Held held;
    held.pages.resize(1 + draw(3));
    for (auto& store : held.pages) {
      for (std::uint64_t block = 0; block < blocks; ++block) {
        for (std::uint32_t slice = 0; slice < slices.size(); ++slice) {
          if (draw(missing) != 0) store.insert({block, slice});
        }
      }
    }
    std::vector<kv::BlockName> names;
    for (std::uint64_t block = 0; block < blocks; ++block) names.push_back(name_of(block));
    PageSearch search(
        {.space = {}, .slices = slices, .block_tokens = block_tokens, .stores = held.pages.size()},
        names, first);
    int questions = 0;
    while (const auto question = search.next()) {
      ASSERT_LT(++questions, 200);
      std::size_t found = 0;
      for (const kv::PageKey& key : question->keys) {
        const auto block = std::to_integer<std::uint64_t>(key.name.digest[0]);
        if (!held.pages[question->store].contains({block, key.slice})) break;
        ++found;
      }
      search.answer(found);
    }
    const std::uint64_t end = farthest_end(held, slices, block_tokens, blocks, first);
    ASSERT_EQ(search.end(), end) << trial;
    reached += end - first;
    for (std::uint32_t slice = 0; slice < slices.size(); ++slice) {
      std::uint64_t block =
          kv::memory::first_block_kept(slices[slice], end * block_tokens, block_tokens);
      for (block = std::max(block, first); block < end; ++block) {
        ASSERT_TRUE(held.pages[search.store_of(block, slice)].contains({block, slice})) << trial;
      }
    }
  }
  EXPECT_GT(reached, 20000u);
}

}  // namespace
}  // namespace pagoda::engine
