#include "events/replay_buffer.h"

#include <gtest/gtest.h>

#include <vector>

namespace pagoda::events {
namespace {

std::vector<std::uint64_t> kept_from(const ReplayBuffer& buffer, std::uint64_t sequence) {
  std::vector<std::uint64_t> kept;
  buffer.for_each_from(sequence, [&](const ReplayBuffer::Batch& batch) {
    kept.push_back(batch.sequence);
    return true;
  });
  return kept;
}

TEST(ReplayBuffer, KeepsTheLastBatches) {
  ReplayBuffer buffer(3);
  for (const std::uint64_t sequence : {0, 1, 2, 4, 5}) buffer.push(sequence, "batch");
  EXPECT_EQ(kept_from(buffer, 0), (std::vector<std::uint64_t>{2, 4, 5}));
  EXPECT_EQ(kept_from(buffer, 3), (std::vector<std::uint64_t>{4, 5}));
  EXPECT_TRUE(kept_from(buffer, 6).empty());
}

TEST(ReplayBuffer, IsBoundedInBytes) {
  ReplayBuffer buffer(1000);
  const std::string large(ReplayBuffer::kBytesMax / 4, 'x');
  for (std::uint64_t sequence = 0; sequence < 10; ++sequence) buffer.push(sequence, large);
  EXPECT_EQ(kept_from(buffer, 0), (std::vector<std::uint64_t>{6, 7, 8, 9}));
}

}  // namespace
}  // namespace pagoda::events
