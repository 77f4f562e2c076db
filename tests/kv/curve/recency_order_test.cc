#include "kv/curve/recency_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace pagoda::kv {
namespace {

constexpr std::uint16_t kSampled = 20;
constexpr std::uint16_t kHot = 7;

// The same as a plain list, newest last.
RecencyOrder::Counts newer_in(const std::vector<std::uint32_t>& list, std::uint32_t item) {
  RecencyOrder::Counts counts;
  for (auto it = std::find(list.begin(), list.end(), item) + 1; it != list.end(); ++it) {
    ++(*it < kSampled ? counts.sampled : counts.hot);
  }
  return counts;
}

TEST(RecencyOrder, CountsWhatAListWouldOfEitherKind) {
  RecencyOrder order(kSampled, kHot);
  std::vector<std::uint32_t> list;
  for (std::uint64_t step = 0; step < 5000; ++step) {
    const auto item = static_cast<std::uint32_t>(random_bits(1, 0, step) % (kSampled + kHot));
    const auto other = static_cast<std::uint32_t>(random_bits(1, 1, step) % (kSampled + kHot));
    const auto at = std::find(list.begin(), list.end(), item);
    const bool listed = at != list.end();
    switch (random_bits(1, 2, step) % 6) {
      case 0:
        order.forget(item);
        if (listed) list.erase(at);
        break;
      case 1:
        if (!listed || order.contains(other)) break;
        order.replace(item, other);
        *at = other;
        break;
      default:
        order.use(item);
        if (listed) list.erase(at);
        list.push_back(item);
    }
    order.check();
    for (std::uint32_t i = 0; i < kSampled + kHot; ++i) {
      const bool known = std::find(list.begin(), list.end(), i) != list.end();
      ASSERT_EQ(order.contains(i), known) << "step " << step;
      if (!known) continue;
      ASSERT_EQ(order.newer(i), newer_in(list, i)) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace pagoda::kv
