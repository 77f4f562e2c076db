#include "kv/explain/eviction_log.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/random.h"

namespace pagoda::kv {
namespace {

constexpr std::uint64_t kStride = UINT64_MAX / 90;  // identities fall into all chains

TEST(EvictionLog, RemembersTheLastSoManyAndSaysSinceWhen) {
  for (const std::uint32_t most : {1u, 2u, 7u, 64u}) {
    EvictionLog log(most);
    std::deque<std::pair<std::uint64_t, EvictionRecord>> last;
    std::optional<std::int64_t> forgotten;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const std::uint64_t identity = random_bits(most, 0, i) % 90 * kStride;
      const EvictionRecord left = {.left_ns = static_cast<std::int64_t>(i),
                                   .idle = static_cast<std::uint32_t>(i % 5),
                                   .account = static_cast<std::uint32_t>(i % 3),
                                   .cause = static_cast<EvictionCause>(i % 4)};
      log.add(identity, left);
      log.check();
      last.emplace_front(identity, left);
      if (last.size() > most) {
        forgotten = last.back().second.left_ns;
        last.pop_back();
      }
      ASSERT_EQ(log.forgotten_until_ns(), forgotten);
      for (std::uint64_t asked = 0; asked < 90; ++asked) {
        std::optional<EvictionRecord> latest;
        for (const auto& [known, record] : last) {
          if (!latest && known == asked * kStride) latest = record;
        }
        ASSERT_EQ(log.find(asked * kStride), latest) << most << ", " << i << ", " << asked;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::kv
