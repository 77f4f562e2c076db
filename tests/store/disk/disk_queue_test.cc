// The requests of a disk store without its threads: their order, their time and their reports.
#include "store/disk/disk_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <utility>

#include "base/random.h"
#include "store/disk/page_samples.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

constexpr std::uint32_t kBlockTokens = 4;
constexpr std::int64_t kRequestLimit = 100;
constexpr std::int64_t kLookupLimit = 10;

class DiskQueueTest : public testing::Test {
 protected:
  void read(kv::StoreTicket ticket, std::int64_t now_ns = 0) {
    queue_.put_read({ticket, sample_label(ticket, kBlockTokens), page_}, now_ns);
  }
  void write(kv::StoreTicket ticket, std::int64_t now_ns = 0, std::uint64_t owner = 0) {
    queue_.put_write({ticket, sample_label(ticket, kBlockTokens, owner), page_}, now_ns);
  }
  static kv::PageKey key(kv::StoreTicket ticket) { return sample_label(ticket, kBlockTokens).key; }

  // What the queue reported since the last call: ticket and fault of each, in order.
  std::vector<std::pair<kv::StoreTicket, StoreFault>> reports() {
    queue_.check();
    return std::exchange(reports_, {});
  }

  using Reports = std::vector<std::pair<kv::StoreTicket, StoreFault>>;

  std::array<std::byte, 16> page_ = {};
  Reports reports_;
  std::map<kv::StoreTicket, std::size_t> found_;
  DiskQueue queue_{
      {.writes_waiting_max = 4, .request_limit_ns = kRequestLimit, .lookup_limit_ns = kLookupLimit},
      [this](kv::StoreTicket ticket, StoreFault fault, std::size_t keys_found) {
        reports_.emplace_back(ticket, fault);
        found_[ticket] = keys_found;
      }};
};

TEST_F(DiskQueueTest, ReadsGoFirstButOneOfFourRequestsIsAWrite) {
  for (kv::StoreTicket ticket = 1; ticket <= 7; ++ticket) read(ticket);
  for (kv::StoreTicket ticket = 11; ticket <= 14; ++ticket) write(ticket);
  std::string order;
  while (const auto request = queue_.next()) order += request->is_write ? 'w' : 'r';
  EXPECT_EQ(order, "wrrrwrrrwrw") << "writes go on when no read is left";
  EXPECT_EQ(queue_.in_flight(), 11u);
  EXPECT_EQ(queue_.writes_in_flight(), 4u);
}

TEST_F(DiskQueueTest, RequestsOfAKindBeginInTheOrderOfCalls) {
  for (const kv::StoreTicket ticket : {5u, 3u, 9u}) read(ticket);
  std::vector<kv::StoreTicket> order;
  while (const auto request = queue_.next()) order.push_back(request->ticket);
  EXPECT_EQ(order, (std::vector<kv::StoreTicket>{5, 3, 9}));
}

TEST_F(DiskQueueTest, HeldWritesWaitAndReadsGoOn) {
  write(1);
  read(2);
  queue_.hold_writes(true);
  EXPECT_EQ(queue_.next()->ticket, 2u);
  EXPECT_EQ(queue_.next(), nullptr);
  queue_.hold_writes(false);
  EXPECT_EQ(queue_.next()->ticket, 1u);
}

TEST_F(DiskQueueTest, IsFullOfWritesAtItsLimitWhateverReadsWait) {
  for (kv::StoreTicket ticket = 1; ticket <= 9; ++ticket) read(ticket);
  for (kv::StoreTicket ticket = 11; ticket <= 13; ++ticket) write(ticket);
  EXPECT_FALSE(queue_.is_full_of_writes());
  write(14);
  EXPECT_TRUE(queue_.is_full_of_writes());
  const auto begun = queue_.next();
  EXPECT_TRUE(begun->is_write);
  EXPECT_FALSE(queue_.is_full_of_writes()) << "one in flight does not wait";
}

TEST_F(DiskQueueTest, AWriteIsKnownByItsKeyUntilItEnds) {
  write(1);
  write(2);
  const auto first = queue_.next();
  EXPECT_TRUE(queue_.is_writing(key(1)));
  EXPECT_FALSE(queue_.are_writes_ended(1));
  queue_.end(*first, StoreFault::kNone);
  EXPECT_FALSE(queue_.is_writing(key(1)));
  EXPECT_TRUE(queue_.is_writing(key(2)));
  EXPECT_TRUE(queue_.are_writes_ended(1));
  EXPECT_FALSE(queue_.are_writes_ended(queue_.last_number()));
  EXPECT_EQ(reports(), (Reports{{1, StoreFault::kNone}}));
}

TEST_F(DiskQueueTest, WaitingRequestsThatAreLateEndWithATimeout) {
  read(1, 0);
  write(2, 0);
  read(3, 50);
  queue_.expire(kRequestLimit);
  EXPECT_EQ(reports(), Reports{}) << "the limit itself is in time";
  queue_.expire(kRequestLimit + 1);
  EXPECT_EQ(reports(), (Reports{{1, StoreFault::kTimeout}, {2, StoreFault::kTimeout}}));
  EXPECT_FALSE(queue_.is_writing(key(2)));
  EXPECT_EQ(queue_.next()->ticket, 3u);
}

TEST_F(DiskQueueTest, ARequestInFlightThatIsLateIsReportedOnceAndItsBytesAreNotTouched) {
  read(1);
  const auto request = queue_.next();
  EXPECT_EQ(queue_.next_timeout_ns(), kRequestLimit + 1);
  queue_.expire(kRequestLimit + 1);
  queue_.expire(kRequestLimit + 2);
  EXPECT_FALSE(DiskQueue::claim_bytes(*request));
  EXPECT_EQ(queue_.next_timeout_ns(), std::numeric_limits<std::int64_t>::max());
  queue_.end(*request, StoreFault::kNone);
  EXPECT_EQ(reports(), (Reports{{1, StoreFault::kTimeout}}));
}

TEST_F(DiskQueueTest, BytesThatAreBeingCopiedAreNotGivenBack) {
  read(1);
  const auto request = queue_.next();
  ASSERT_TRUE(DiskQueue::claim_bytes(*request));
  queue_.expire(kRequestLimit + 1);
  EXPECT_EQ(reports(), Reports{});
  DiskQueue::release_bytes(*request);
  queue_.end(*request, StoreFault::kDamaged);
  EXPECT_EQ(reports(), (Reports{{1, StoreFault::kDamaged}}));
}

TEST_F(DiskQueueTest, CancelledReadsEndIfTheyHaveNotBegun) {
  read(1);
  read(2);
  read(3);
  const auto begun = queue_.next();
  queue_.cancel_reads(std::array<kv::StoreTicket, 2>{1, 3});
  queue_.expire(0);
  EXPECT_EQ(reports(), (Reports{{3, StoreFault::kCancelled}}));
  queue_.end(*begun, StoreFault::kNone);
  EXPECT_EQ(reports(), (Reports{{1, StoreFault::kNone}}));
}

TEST_F(DiskQueueTest, WritesAreCancelledByOwnerOrAll) {
  write(1, 0, 7);
  write(2, 0, 8);
  write(3, 0, 7);
  queue_.cancel_writes(sample_label(1, kBlockTokens, 7).owner);
  queue_.expire(0);
  EXPECT_EQ(reports(), (Reports{{1, StoreFault::kCancelled}, {3, StoreFault::kCancelled}}));
  queue_.cancel_writes(std::nullopt);
  queue_.expire(0);
  EXPECT_EQ(reports(), (Reports{{2, StoreFault::kCancelled}}));
}

TEST_F(DiskQueueTest, LookupsAreAnsweredOrFindNothingWhenTheirTimeIsUp) {
  const std::array keys = {key(1), key(2)};
  queue_.put_lookup(1, keys, 0);
  queue_.put_lookup(2, keys, 5);
  queue_.expire(kLookupLimit - 1);
  EXPECT_EQ(reports(), Reports{});
  queue_.expire(kLookupLimit);
  EXPECT_EQ(reports(), (Reports{{1, StoreFault::kNone}}));
  EXPECT_EQ(found_[1], 0u);
  queue_.answer_lookups([](const std::vector<kv::PageKey>& asked) { return asked.size(); });
  EXPECT_EQ(reports(), (Reports{{2, StoreFault::kNone}}));
  EXPECT_EQ(found_[2], 2u);
  EXPECT_FALSE(queue_.has_lookups());
}

// By seed: whatever happens, every request is reported once and every write is forgotten.
TEST_F(DiskQueueTest, EveryRequestEndsOnce) {
  std::uint64_t draws = 0;
  const auto below = [&](std::uint64_t end) { return random_bits(11, 0, draws++) % end; };
  std::vector<std::unique_ptr<DiskRequest>> begun;
  kv::StoreTicket asked = 0;
  std::int64_t now_ns = 0;
  std::map<kv::StoreTicket, int> ends;
  const auto count_ends = [&] {
    for (const auto& [ticket, fault] : reports()) ++ends[ticket];
  };
  for (int step = 0; step < 5000; ++step) {
    now_ns += static_cast<std::int64_t>(below(20));
    switch (below(6)) {
      case 0:
        read(++asked, now_ns);
        break;
      case 1:
        if (!queue_.is_full_of_writes()) write(++asked, now_ns, below(3));
        break;
      case 2:
        if (auto request = queue_.next()) begun.push_back(std::move(request));
        break;
      case 3:
        if (begun.empty()) break;
        queue_.end(*begun.front(), StoreFault::kNone);
        begun.erase(begun.begin());
        break;
      case 4:
        queue_.cancel_reads(std::array<kv::StoreTicket, 1>{below(asked + 1)});
        break;
      default:
        queue_.expire(now_ns);
    }
    count_ends();
  }
  for (const auto& request : begun) queue_.end(*request, StoreFault::kNone);
  queue_.expire(now_ns + kRequestLimit + 1);
  count_ends();
  EXPECT_EQ(ends.size(), asked);
  for (const auto& [ticket, times] : ends) EXPECT_EQ(times, 1) << ticket;
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_TRUE(queue_.are_writes_ended(queue_.last_number()));
}

}  // namespace
}  // namespace pagoda::store
