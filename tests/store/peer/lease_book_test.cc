#include "store/peer/lease_book.h"

#include <gtest/gtest.h>

#include "store/page_samples.h"

namespace pagoda::store {
namespace {

kv::LeasedPage page_of(std::uint32_t number, kv::OwnerTag owner = {}) {
  return {.label = sample_label(number, owner), .block = kv::BlockId(number), .page = {}};
}

kv::PageKey key_of(std::uint32_t number) { return sample_label(number).key; }

using Ended = LeaseBook::Ended;

TEST(LeaseBook, APageIsForItsHolderAndUntilItsTime) {
  LeaseBook book;
  EXPECT_FALSE(book.add(1, page_of(5), 100));
  EXPECT_NE(book.find(1, key_of(5)), nullptr);
  EXPECT_EQ(book.find(2, key_of(5)), nullptr);
  EXPECT_EQ(book.next_end_ns(), 100);
  Ended ended;
  EXPECT_EQ(book.expire(99, ended), 0u);
  EXPECT_EQ(book.expire(100, ended), 1u);
  EXPECT_EQ(ended, Ended({kv::BlockId(5)}));
  EXPECT_EQ(book.find(1, key_of(5)), nullptr);
  EXPECT_EQ(book.next_end_ns(), INT64_MAX);
}

TEST(LeaseBook, WhatIsNobodysGoesToWhoAsksFirst) {
  LeaseBook book;
  book.add(LeaseBook::kNobody, page_of(5), 100);
  EXPECT_TRUE(book.claim(1, key_of(5), 300));
  EXPECT_FALSE(book.claim(2, key_of(5), 300));
  EXPECT_TRUE(book.claim(1, key_of(5), 400));
  Ended ended;
  EXPECT_EQ(book.expire(399, ended), 0u);
  EXPECT_EQ(book.expire(400, ended), 1u);
}

// A second lease of one page for one holder comes back at once: each is ended once.
TEST(LeaseBook, EveryLeaseEndsOnce) {
  LeaseBook book;
  Ended ended;
  std::size_t begun = 0;
  for (std::uint32_t i = 0; i < 300; ++i) {
    ++begun;
    const std::uint64_t holder = i % 4;
    if (const auto doubled = book.add(holder, page_of(i % 50, sample_owner(i % 3)), 10 + i % 7)) {
      ended.push_back(*doubled);
    }
    if (i % 11 == 0) book.end(holder, key_of(i % 50), ended);
    if (i % 37 == 0) book.end_all(2, ended);
    if (i % 41 == 0) book.expire(12, ended);
    if (i % 53 == 0) book.revoke(sample_owner(1), ended);
    EXPECT_EQ(begun, book.size() + ended.size());
  }
  book.revoke(std::nullopt, ended);
  EXPECT_EQ(ended.size(), begun);
  EXPECT_EQ(book.size(), 0u);
}

TEST(LeaseBook, AnOwnersLeasesAreRevokedAndNoOthers) {
  LeaseBook book;
  book.add(1, page_of(1, sample_owner(1)), 100);
  book.add(1, page_of(2, sample_owner(2)), 100);
  book.add(LeaseBook::kNobody, page_of(3, sample_owner(1)), 100);
  Ended ended;
  book.revoke(sample_owner(1), ended);
  EXPECT_EQ(ended.size(), 2u);
  EXPECT_NE(book.find(1, key_of(2)), nullptr);
}

TEST(LeaseBook, WhatAClientHeldEndsWithIt) {
  LeaseBook book;
  book.add(1, page_of(1), 100);
  book.add(2, page_of(1), 100);
  Ended ended;
  book.end_all(1, ended);
  EXPECT_EQ(ended.size(), 1u);
  EXPECT_NE(book.find(2, key_of(1)), nullptr);
}

}  // namespace
}  // namespace pagoda::store
