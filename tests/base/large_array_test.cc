#include "base/large_array.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

namespace pagoda {
namespace {

TEST(LargeArray, StartsOnACacheLineAtEverySizeAndKeepsItsValues) {
  LargeArray<std::uint32_t> numbers;
  for (const std::size_t count : {1u, 15u, 1000u, 1u << 19, (1u << 20) + 1, 3u << 20}) {
    numbers.resize(count);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(numbers.data()) % kCacheLineBytes, 0u) << count;
    std::iota(numbers.begin(), numbers.end(), 0u);
    numbers.push_back(7);
    for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(numbers[i], i);
  }
  const LargeArray<std::uint32_t> copy = numbers;
  EXPECT_EQ(copy, numbers);
}

TEST(LargeArray, MoreThanThereIsIsAnException) {
  LargeAllocator<std::uint64_t> allocator;
  EXPECT_THROW(static_cast<void>(allocator.allocate(SIZE_MAX / 4)), std::bad_array_new_length);
}

}  // namespace
}  // namespace pagoda
