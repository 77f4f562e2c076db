#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "kv/tiers/page_copier.h"

namespace pagoda::kv {
namespace {

TEST(MemoryCopier, CopiesEveryByteOfEveryPageWithAnyNumberOfThreads) {
  constexpr std::size_t kGuard = 64;
  for (const std::size_t threads : {1, 2, 3, 4}) {
    const auto copier = memory_copier(threads);
    for (const std::size_t page_bytes : {1, 4095, 131072, 131073, 400000}) {
      for (const std::size_t pages : {1, 2, 5, 16}) {
        const std::size_t bytes = page_bytes * pages;
        std::vector<std::byte> from(bytes + kGuard);
        for (std::size_t i = 0; i < from.size(); i += 61) {
          from[i] = static_cast<std::byte>(random_bits(threads, page_bytes, i));
        }
        const HostMemory to = copier->take_memory(bytes + kGuard).value();
        std::vector<PageCopy> moves;
        for (std::size_t page = 0; page < pages; ++page) {  // the last first
          const std::size_t at = (pages - 1 - page) * page_bytes;
          moves.push_back({to.get() + at, from.data() + at, page_bytes});
        }
        for (int time = 0; time < 6; ++time) {  // alone and together
          std::fill_n(to.get(), bytes + kGuard, std::byte{0xEE});
          ASSERT_TRUE(copier->copy(moves).ok());
          ASSERT_TRUE(
              std::equal(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(bytes), to.get()))
              << threads << " threads, " << pages << " pages of " << page_bytes;
          for (std::size_t i = bytes; i < bytes + kGuard; ++i) {
            ASSERT_EQ(to.get()[i], std::byte{0xEE});
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::kv
