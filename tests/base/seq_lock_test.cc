#include "base/seq_lock.h"

#include <gtest/gtest.h>

#include <thread>

namespace pagoda {
namespace {

struct Pair {
  std::uint64_t value = 0;
  std::uint64_t twice = 0;
  std::uint8_t odd_size = 0;
};

TEST(SeqLock, IsReadWholeWhileItIsWritten) {
  SeqLock<Pair> value;
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= 200000; ++i) {
      value.write({i, 2 * i, static_cast<std::uint8_t>(i)});
    }
    done = true;
  });
  std::uint64_t last = 0;
  while (!done) {
    const Pair pair = value.read();
    ASSERT_EQ(pair.twice, 2 * pair.value);
    ASSERT_EQ(pair.odd_size, static_cast<std::uint8_t>(pair.value));
    ASSERT_GE(pair.value, last) << "time does not run back";
    last = pair.value;
  }
  writer.join();
  EXPECT_EQ(value.read().value, 200000u);
}

}  // namespace
}  // namespace pagoda
