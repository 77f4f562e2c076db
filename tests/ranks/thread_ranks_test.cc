// The communicator that other tests rest on: parts arrive, a rank that is gone fails the others.
#include "ranks/thread_ranks.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace pagoda::ranks {
namespace {

TEST(ThreadRanks, EveryRankGetsAllPartsAndTheFirstWhatIsForIt) {
  constexpr std::size_t kOffsets[] = {0, 3, 3, 8};
  ThreadRanks ranks(3);
  std::array<std::vector<std::byte>, 3> all;
  std::array<std::vector<std::byte>, 3> first;
  ranks.run([&](Communicator& mine) {
    const std::uint32_t rank = mine.rank();
    for (auto* const data : {&all[rank], &first[rank]}) {
      data->assign(8, std::byte{0});
      for (std::size_t i = kOffsets[rank]; i < kOffsets[rank + 1]; ++i) {
        (*data)[i] = std::byte(10 * rank + i);
      }
    }
    mine.gather(all[rank].data(), kOffsets);
    mine.gather_to_first(first[rank].data(), kOffsets);
    EXPECT_FALSE(mine.failure());
  });
  std::vector<std::byte> expected;
  for (const int value : {0, 1, 2, 23, 24, 25, 26, 27}) expected.push_back(std::byte(value));
  for (const auto& data : all) EXPECT_EQ(data, expected);
  EXPECT_EQ(first[0], expected);
  EXPECT_EQ(first[1], std::vector<std::byte>(8));
}

TEST(ThreadRanks, WhoWaitsForARankThatIsGoneFailsAndWaitsNoMore) {
  constexpr std::size_t kOffsets[] = {0, 1, 2, 3};
  ThreadRanks ranks(3);
  ranks.run([&](Communicator& mine) {
    if (mine.rank() == 2) return ranks.leave("rank 2 ended");
    std::array<std::byte, 3> data = {};
    for (int i = 0; i < 3; ++i) mine.gather(data.data(), kOffsets);
    ASSERT_TRUE(mine.failure());
    EXPECT_EQ(mine.failure()->message, "rank 2 ended");
  });
}

TEST(ThreadRanks, AWaitHasALimit) {
  constexpr std::size_t kOffsets[] = {0, 1, 2};
  ThreadRanks ranks(2, std::chrono::milliseconds(1));
  std::array<std::byte, 2> data = {};
  ranks.of(0).gather(data.data(), kOffsets);
  ASSERT_TRUE(ranks.of(0).failure());
}

}  // namespace
}  // namespace pagoda::ranks
