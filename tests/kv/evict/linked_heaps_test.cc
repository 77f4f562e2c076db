#include "kv/evict/linked_heaps.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace pagoda::kv {
namespace {

TEST(LinkedHeaps, HaveOnTopWhatASortedSetHas) {
  constexpr std::uint32_t kItems = 40;
  using Entry = std::pair<std::int64_t, std::uint32_t>;  // the negative key, the item
  std::uint64_t erased_inside = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::uint64_t drawn = 0;
    const auto below = [&](std::uint64_t bound) { return random_bits(seed, 3, drawn++) % bound; };
    LinkedHeaps heaps(kItems);
    std::vector<LinkedHeaps::Item> tops(3, LinkedHeaps::kNone);
    std::vector<std::set<Entry>> plain(3);
    std::vector<std::uint32_t> heap_of(kItems, 3);
    for (int i = 0; i < 600; ++i) {
      const auto item = static_cast<std::uint32_t>(below(kItems));
      std::uint32_t& heap = heap_of[item];
      ASSERT_EQ(heaps.contains(item), heap < 3);
      if (heap == 3) {
        heap = static_cast<std::uint32_t>(below(3));
        const auto key = static_cast<std::int64_t>(below(20));
        heaps.push(tops[heap], item, key);
        plain[heap].insert({-key, item});
      } else if (below(2) == 0) {
        erased_inside += tops[heap] == item ? 0 : 1;
        plain[heap].erase({-heaps.key(item), item});
        heaps.erase(tops[heap], item);
        heap = 3;
      }
      for (int h = 0; h < 3; ++h) {
        ASSERT_EQ(heaps.check(tops[h]), plain[h].size());
        ASSERT_EQ(tops[h], plain[h].empty() ? LinkedHeaps::kNone : plain[h].begin()->second);
      }
    }
  }
  EXPECT_GT(erased_inside, 5000u);
}

}  // namespace
}  // namespace pagoda::kv
