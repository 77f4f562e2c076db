#include "store/remote/known_keys.h"

#include <gtest/gtest.h>

#include "store/page_samples.h"

namespace pagoda::store {
namespace {

kv::PageKey key_of(std::uint64_t number) { return sample_label(number).key; }

TEST(KnownKeys, KnowsWhatItLearnedAndNoOtherGroupOrSpace) {
  KnownKeys known(100, 1000);
  known.learn(key_of(1), 0);
  EXPECT_TRUE(known.knows(key_of(1), 0));
  EXPECT_FALSE(known.knows(key_of(2), 0));
  kv::PageKey other = key_of(1);
  ++other.group;
  EXPECT_FALSE(known.knows(other, 0));
  other = key_of(1);
  other.space.digest[0] ^= std::byte{1};
  EXPECT_FALSE(known.knows(other, 0));
}

TEST(KnownKeys, AreForgottenOneByOneAllAtOnceAndByAge) {
  KnownKeys known(100, 1000);
  known.learn(key_of(1), 0);
  known.learn(key_of(2), 500);
  known.forget(key_of(1));
  EXPECT_FALSE(known.knows(key_of(1), 500));
  EXPECT_TRUE(known.knows(key_of(2), 1500));
  EXPECT_FALSE(known.knows(key_of(2), 1501));  // asking did not make it younger
  known.learn(key_of(3), 0);
  known.clear();
  EXPECT_FALSE(known.knows(key_of(3), 0));
}

TEST(KnownKeys, AreNeverMoreThanTheirMaximumAndTheUsedOnesStay) {
  KnownKeys known(100, 1'000'000);
  known.learn(key_of(0), 0);
  for (std::uint64_t number = 1; number < 1000; ++number) {
    known.learn(key_of(number), 0);
    EXPECT_TRUE(known.knows(key_of(0), 0));
  }
  std::size_t count = 0;
  for (std::uint64_t number = 1; number < 1000; ++number) {
    if (known.knows(key_of(number), 0)) ++count;
  }
  EXPECT_LE(count, 100u);
  EXPECT_GE(count, 49u);
}

}  // namespace
}  // namespace pagoda::store
