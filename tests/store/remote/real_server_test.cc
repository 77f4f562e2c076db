// Tests the store against real servers. Every test runs with Redis and with Memcached.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "store/remote/server_process.h"
#include "store/remote/store_driver.h"
#include "store/store_speed.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;
using namespace std::chrono_literals;

std::vector<kv::PageKey> keys_of(std::initializer_list<std::uint64_t> numbers) {
  std::vector<kv::PageKey> keys;
  for (const std::uint64_t number : numbers) keys.push_back(sample_label(number).key);
  return keys;
}

class AnyServer : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    REQUIRE_SERVER(is_redis() ? ServerProcess::has_redis() : ServerProcess::has_memcached(),
                   GetParam());
  }
  bool is_redis() const { return std::string(GetParam()) == "redis"; }
  ServerProcess start(int port = 0) const {
    return is_redis() ? ServerProcess::redis({}, port) : ServerProcess::memcached({}, port);
  }
  RemoteOptions options(const ServerProcess& server) const {
    return quick_options(std::string(GetParam()) + "://" + server.host_and_port());
  }
};
INSTANTIATE_TEST_SUITE_P(Servers, AnyServer, ::testing::Values("redis", "memcached"),
                         [](const auto& server) { return std::string(server.param); });

TEST_P(AnyServer, WhatOneStoreWritesAnotherReads) {
  const ServerProcess server = start();
  StoreDriver one(options(server));
  StoreDriver two(options(server));
  ASSERT_TRUE(one.connect() && two.connect());
  EXPECT_EQ(two.read(1), StoreFault::kAbsent);
  EXPECT_EQ(one.write(1), StoreFault::kNone);
  EXPECT_EQ(one.write(2, sample_owner(5)), StoreFault::kNone);
  EXPECT_EQ(two.read(1), StoreFault::kNone);
  EXPECT_EQ(two.read(2, sample_owner(5)), StoreFault::kNone);
  EXPECT_EQ(two.store().stats().pages_read, 2u);
  EXPECT_EQ(one.store().stats().bytes_written, 2 * StoreDriver::kPageBytes);
}

TEST_P(AnyServer, ALookupCountsTheFirstKeysWithoutAGap) {
  const ServerProcess server = start();
  StoreDriver one(options(server));
  ASSERT_TRUE(one.connect());
  EXPECT_EQ(one.find(keys_of({1, 2, 3})), 0u);
  for (const std::uint64_t number : {1, 2, 4}) ASSERT_EQ(one.write(number), StoreFault::kNone);
  EXPECT_EQ(one.find(keys_of({1, 2, 3, 4})), 2u);
  EXPECT_EQ(one.find(keys_of({1, 2, 4})), 3u);
  EXPECT_EQ(one.find(keys_of({3, 1})), 0u);
  EXPECT_EQ(one.find({}), 0u);
}

TEST_P(AnyServer, ALookupOfThousandsOfKeysIsAnsweredWhole) {
  const ServerProcess server = start();
  StoreDriver one(options(server));
  ASSERT_TRUE(one.connect());
  std::vector<kv::PageKey> keys;
  for (std::uint64_t number = 0; number < 1000; ++number) {
    keys.push_back(sample_label(number).key);
    if (number != 700) {
      ASSERT_EQ(one.write(number, {}, 100), StoreFault::kNone);
    }
  }
  EXPECT_EQ(one.find(keys), 700u);
  ASSERT_EQ(one.write(700, {}, 100), StoreFault::kNone);
  EXPECT_EQ(one.find(keys), 1000u);
}

TEST_P(AnyServer, APageOfOtherTokensOrAnotherOwnerIsForeign) {
  const ServerProcess server = start();
  StoreDriver one(options(server));
  ASSERT_TRUE(one.connect());
  ASSERT_EQ(one.write(1, sample_owner(1)), StoreFault::kNone);
  std::vector<std::byte> page(StoreDriver::kPageBytes);
  kv::PageLabel label = sample_label(1, sample_owner(1));
  label.tokens[3] = TokenId(label.tokens[3].value() ^ 1);
  EXPECT_EQ(one.read(label, page), StoreFault::kForeign);
  EXPECT_EQ(one.store().stats().faults[static_cast<std::size_t>(StoreFault::kForeign)], 1u);
  // Memcached keeps a generation for each owner: to another the page does not exist.
  EXPECT_NE(one.read(1, sample_owner(2)), StoreFault::kNone);
  EXPECT_EQ(one.read(1, sample_owner(1)), StoreFault::kNone);
}

TEST_P(AnyServer, KeepsKnowsWhatWasWrittenReadOrFoundAndNothingElse) {
  const ServerProcess server = start();
  StoreDriver one(options(server));
  StoreDriver two(options(server));
  ASSERT_TRUE(one.connect() && two.connect());
  const kv::PageKey key = sample_label(1).key;
  EXPECT_FALSE(one.store().keeps(key));
  ASSERT_EQ(one.write(1), StoreFault::kNone);
  EXPECT_TRUE(one.store().keeps(key));
  EXPECT_FALSE(two.store().keeps(key));
  EXPECT_EQ(two.find({key}), 1u);
  EXPECT_TRUE(two.store().keeps(key));
}

TEST_P(AnyServer, APageIsGoneAfterItsTime) {
  const ServerProcess server = start();
  RemoteOptions short_lived = options(server);
  short_lived.ttl_s = 1;
  StoreDriver one(short_lived);
  ASSERT_TRUE(one.connect());
  ASSERT_EQ(one.write(1), StoreFault::kNone);
  EXPECT_EQ(one.read(1), StoreFault::kNone);
  std::this_thread::sleep_for(2500ms);  // memcached's clock ticks once a second
  EXPECT_EQ(one.read(1), StoreFault::kAbsent);
  EXPECT_FALSE(one.store().keeps(sample_label(1).key));
}

TEST_P(AnyServer, AServerThatStopsAnsweringCostsABoundedWaitAndThenNothing) {
  ServerProcess server = start();
  RemoteOptions hasty = options(server);
  hasty.request_timeout_ns = 500'000'000;
  hasty.connect_timeout_ns = 200'000'000;
  StoreDriver one(hasty);
  ASSERT_TRUE(one.connect());
  ASSERT_EQ(one.write(1), StoreFault::kNone);
  server.pause();
  std::vector<std::vector<std::byte>> pages(3, std::vector<std::byte>(StoreDriver::kPageBytes));
  std::vector<kv::StoreTicket> tickets;
  const auto begin = std::chrono::steady_clock::now();
  for (auto& page : pages) {
    tickets.push_back(one.next_ticket());
    one.store().read({tickets.back(), sample_label(1), page});
  }
  for (const kv::StoreTicket ticket : tickets) {
    EXPECT_EQ(one.await(ticket).fault, StoreFault::kTimeout);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  ASSERT_TRUE(one.goes_off());
  EXPECT_FALSE(one.store().stats().condition.empty());
  const auto off = std::chrono::steady_clock::now();
  EXPECT_EQ(one.read(1), StoreFault::kOff);
  EXPECT_EQ(one.write(2), StoreFault::kOff);
  EXPECT_EQ(one.find(keys_of({1})), 0u);
  EXPECT_LT(std::chrono::steady_clock::now() - off, 200ms);
  server.resume();
  ASSERT_TRUE(one.connect());
  // The server's replies come too late for those pages now.
  for (const auto& page : pages) {
    EXPECT_EQ(page, std::vector<std::byte>(StoreDriver::kPageBytes));
  }
  EXPECT_EQ(one.read(1), StoreFault::kNone);
}

TEST_P(AnyServer, ARestartUnderLoadLosesPagesAndNothingElse) {
  ServerProcess server = start();
  const int port = server.port();
  StoreDriver one(options(server));
  ASSERT_TRUE(one.connect());
  std::uint64_t good_before = 0;
  std::uint64_t good_after = 0;
  for (std::uint64_t number = 0; number < 100; ++number) {
    if (one.write(number) == StoreFault::kNone) ++good_before;
  }
  std::thread restart([&] {
    std::this_thread::sleep_for(20ms);
    server.kill();
  });
  for (std::uint64_t number = 0; number < 2000 && one.store().stats().is_on; ++number) {
    one.read(number % 100);  // checks bytes
    one.write(number);
  }
  restart.join();
  const ServerProcess again = start(port);
  ASSERT_TRUE(one.connect());
  for (std::uint64_t number = 0; number < 100; ++number) {
    if (one.write(number) == StoreFault::kNone && one.read(number) == StoreFault::kNone) {
      ++good_after;
    }
  }
  EXPECT_EQ(good_before, 100u);
  EXPECT_EQ(good_after, 100u);
}

TEST_P(AnyServer, AFullServerRefusesWritesOrDropsOldPagesAndServesOn) {
  // 80 MiB of pages meet a server of 32 MiB.
  const ServerProcess server =
      is_redis() ? ServerProcess::redis({"--maxmemory", "32mb", "--maxmemory-policy", "noeviction"})
                 : ServerProcess::memcached({"-m", "32", "-M"});
  StoreDriver one(options(server));
  ASSERT_TRUE(one.connect());
  constexpr std::size_t kBytes = 400'000;
  std::uint64_t refused = 0;
  std::vector<std::uint64_t> kept;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const bool asked = one.store().takes_writes();
    const StoreFault fault = one.write(number, {}, kBytes);
    if (fault == StoreFault::kNone) {
      kept.push_back(number);
    } else {
      // After some refusals in a row the store sends no writes for a while.
      EXPECT_EQ(fault, asked ? StoreFault::kNoRoom : StoreFault::kOff);
      ++refused;
    }
  }
  EXPECT_GT(refused, 50u);
  EXPECT_GT(kept.size(), 30u);
  EXPECT_TRUE(one.store().stats().is_on);
  for (const std::uint64_t number : kept)
    EXPECT_EQ(one.read(number, {}, kBytes), StoreFault::kNone);
}

TEST_P(AnyServer, ValuesAboveTheItemLimitAreCutAndJoined) {
  const ServerProcess server = start();
  RemoteOptions small = options(server);
  small.item_bytes_max = 5000;
  StoreDriver cut(small);
  StoreDriver cut_too(small);
  StoreDriver whole(options(server));
  ASSERT_TRUE(cut.connect() && cut_too.connect() && whole.connect());
  for (const std::size_t bytes : {4000, 4700, 4800, 4844, 4845, 5000, 9999, 25'000, 1'000'000}) {
    ASSERT_EQ(cut.write(bytes, {}, bytes), StoreFault::kNone);
    EXPECT_EQ(cut_too.read(bytes, {}, bytes), StoreFault::kNone) << bytes;
    EXPECT_EQ(cut_too.find(keys_of({bytes})), 1u);
  }
  EXPECT_NE(whole.read(25'000, {}, 25'000), StoreFault::kNone);
  EXPECT_EQ(cut.write(1, {}, 5000 * 256), StoreFault::kNoRoom);
  EXPECT_NE(cut.store().stats().condition.find("256 items of 5000"), std::string::npos);
}

TEST_P(AnyServer, LargePagesTravelAtTheLimitTheServerHasItself) {
  const ServerProcess server = start();
  StoreDriver one(options(server));
  ASSERT_TRUE(one.connect());
  for (const std::size_t bytes : {1'047'000, 1'048'576, 5'000'000, 20'000'000}) {
    ASSERT_EQ(one.write(bytes, {}, bytes), StoreFault::kNone) << bytes;
    EXPECT_EQ(one.read(bytes, {}, bytes), StoreFault::kNone) << bytes;
  }
}

TEST_P(AnyServer, AnOwnersPagesAreRemovedAndNobodyElses) {
  const ServerProcess server = start();
  RemoteOptions small = options(server);
  small.item_bytes_max = 6000;  // so that pages have parts
  StoreDriver one(small);
  StoreDriver two(small);
  ASSERT_TRUE(one.connect() && two.connect());
  for (std::uint64_t number = 0; number < 30; ++number) {
    ASSERT_EQ(one.write(number, sample_owner(number % 3)), StoreFault::kNone);
  }
  const auto removal = two.store().remove(sample_owner(1));
  ASSERT_TRUE(removal.ok()) << removal.error().message;
  if (is_redis()) {
    EXPECT_EQ(removal.value().pages, 10u);
    EXPECT_GT(removal.value().bytes, 10 * StoreDriver::kPageBytes);
  } else {
    EXPECT_NE(removal.value().note.find("cannot list"), std::string::npos);
  }
  for (std::uint64_t number = 0; number < 30; ++number) {
    const StoreFault expected = number % 3 == 1 ? StoreFault::kAbsent : StoreFault::kNone;
    EXPECT_EQ(one.read(number, sample_owner(number % 3)), expected);
  }
  // The page can be written again.
  ASSERT_EQ(one.write(1, sample_owner(1)), StoreFault::kNone);
  EXPECT_EQ(two.read(1, sample_owner(1)), StoreFault::kNone);
  ASSERT_TRUE(two.store().remove_all().ok());
  for (std::uint64_t number = 0; number < 30; ++number) {
    EXPECT_EQ(one.read(number, sample_owner(number % 3)), StoreFault::kAbsent);
  }
}

TEST_P(AnyServer, ARemovalTakesTheWritesThatWereAskedForBeforeIt) {
  const ServerProcess server = start();
  RemoteOptions narrow = options(server);
  narrow.bytes_in_flight_max = 4 * StoreDriver::kPageBytes;  // so that most writes wait
  StoreDriver one(narrow);
  ASSERT_TRUE(one.connect());
  std::vector<std::vector<std::byte>> pages;
  std::vector<kv::StoreTicket> tickets;
  pages.reserve(100);
  for (std::uint64_t number = 0; number < 100; ++number) {
    pages.push_back(sample_page(number, StoreDriver::kPageBytes));
    tickets.push_back(one.next_ticket());
    ASSERT_TRUE(one.store().write({tickets.back(), sample_label(number), pages.back()}));
  }
  ASSERT_TRUE(one.store().remove({}).ok());
  for (const kv::StoreTicket ticket : tickets) {
    EXPECT_EQ(one.await(ticket).fault, StoreFault::kNone);
  }
  for (std::uint64_t number = 0; number < 100; ++number) {
    EXPECT_EQ(one.read(number), StoreFault::kAbsent);
  }
}

TEST_P(AnyServer, FlushWaitsForWrites) {
  ServerProcess server = start();
  const std::vector<std::byte> page = sample_page(1, StoreDriver::kPageBytes);  // outlives writes
  StoreDriver one(options(server));
  StoreDriver two(options(server));
  ASSERT_TRUE(one.connect() && two.connect());
  ASSERT_TRUE(one.store().write({one.next_ticket(), sample_label(1), page}));
  ASSERT_TRUE(one.store().flush(5'000'000'000).ok());
  EXPECT_EQ(two.read(1), StoreFault::kNone);
  server.pause();
  ASSERT_TRUE(one.store().write({one.next_ticket(), sample_label(2), page}));
  EXPECT_FALSE(one.store().flush(50'000'000).ok());
  server.resume();
}

TEST_P(AnyServer, SealedPagesAreReadWithTheKeyAlone) {
  const ServerProcess server = start();
  const auto folder = std::filesystem::temp_directory_path();
  const std::string tag = std::to_string(server.port());
  RemoteOptions keyed = options(server);
  keyed.key_file = folder / ("pagoda_key_a_" + tag);
  RemoteOptions other = options(server);
  other.key_file = folder / ("pagoda_key_b_" + tag);
  std::ofstream(keyed.key_file) << std::string(64, 'a') << "\n";
  std::ofstream(other.key_file) << std::string(32, 'b');
  for (const std::string& file : {keyed.key_file, other.key_file}) {
    std::filesystem::permissions(file, std::filesystem::perms(0600));
  }
  {
    StoreDriver one(keyed);
    StoreDriver two(keyed);
    StoreDriver wrong(other);
    StoreDriver none(options(server));
    ASSERT_TRUE(one.connect() && two.connect() && wrong.connect() && none.connect());
    ASSERT_EQ(one.write(1, sample_owner(1)), StoreFault::kNone);
    EXPECT_EQ(two.read(1, sample_owner(1)), StoreFault::kNone);
    EXPECT_EQ(wrong.read(1, sample_owner(1)), StoreFault::kForeign);
    EXPECT_EQ(none.read(1, sample_owner(1)), StoreFault::kForeign);
    ASSERT_EQ(none.write(2), StoreFault::kNone);
    EXPECT_EQ(one.read(2), StoreFault::kForeign);
    ASSERT_TRUE(two.store().remove(sample_owner(1)).ok());
    EXPECT_EQ(one.read(1, sample_owner(1)), StoreFault::kAbsent);
  }
  std::filesystem::remove(keyed.key_file);
  std::filesystem::remove(other.key_file);
}

TEST_P(AnyServer, ItsSpeedIsThatOfPagesThatCameBackWhole) {
  ServerProcess server = start();
  StoreDriver one(options(server));
  ASSERT_TRUE(one.connect());
  const SpeedTrial trial = {.pages = 100, .page_bytes = 20'000, .timeout_ns = 20'000'000'000};
  const auto speed = measure_speed(one.store(), trial);
  ASSERT_TRUE(speed.ok()) << speed.error().message;
  EXPECT_EQ(speed.value().pages_failed, 0u);
  EXPECT_EQ(one.store().stats().pages_read, 100u);
  EXPECT_EQ(one.store().stats().bytes_written, 2'000'000u);
  EXPECT_GT(speed.value().read_bytes_per_s(), 2e6 / 20);
  server.kill();
  ASSERT_TRUE(one.goes_off());
  EXPECT_FALSE(
      measure_speed(one.store(), {.pages = 1, .page_bytes = 1, .timeout_ns = 100'000'000}).ok());
}

TEST_P(AnyServer, AServerThatIsNotThereIsOffAndTriedAgain) {
  const int port = free_port();
  RemoteOptions away =
      quick_options(std::string(GetParam()) + "://127.0.0.1:" + std::to_string(port));
  StoreDriver one(away);
  EXPECT_TRUE(one.is_off_because("refused"));
  EXPECT_FALSE(one.store().await_connection(10'000'000).ok());
  EXPECT_EQ(one.read(1), StoreFault::kOff);
  EXPECT_FALSE(one.store().remove(sample_owner(1)).ok());
  const ServerProcess server = start(port);
  ASSERT_TRUE(one.connect());
  EXPECT_EQ(one.write(1), StoreFault::kNone);
}

}  // namespace
}  // namespace pagoda::store
