// By seed, a server now and then lies, refuses, stalls or hangs up, under many requests. Every
// ticket is reported once, a page that comes back is the one that was written, and no page is
// touched after its report.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "store/remote/fake_server.h"
#include "store/remote/store_driver.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;
using namespace std::chrono_literals;

constexpr std::size_t kChaosPageBytes = 3000;
constexpr std::uint64_t kPages = 40;

class ChaoticRedis {
 public:
  explicit ChaoticRedis(std::uint64_t seed) : seed_(seed) {}

  void serve(FakeServer::Peer& peer) {
    while (const auto words = peer.redis_command()) {
      const std::uint64_t draw = random_bits(seed_, 0, commands_++);
      const std::size_t piece = (draw >> 32) % 700 + 1;
      std::string reply = answer(*words);
      if (words->front() == "PING") {
        reply = "+PONG\r\n";
      } else if (draw % 100 < 2) {
        peer.send(reply.substr(0, (draw >> 16) % (reply.size() + 1)));
        return;
      } else if (draw % 100 < 3) {
        std::this_thread::sleep_for(80ms);
      } else if (draw % 100 < 7) {
        reply = "-LOADING in memory\r\n";
      } else if (draw % 100 < 15) {
        const std::size_t at = (draw >> 16) % reply.size();
        reply[at] = static_cast<char>(reply[at] ^ (1 << (draw >> 8) % 8));
      } else if (draw % 100 < 16) {
        reply += "$-1\r\n";
      }
      if (!peer.send(reply, piece)) return;
    }
  }

 private:
  std::string answer(const std::vector<std::string>& words) {
    const std::lock_guard lock(mutex_);
    if (words[0] == "SET") {
      values_[words[1]] = words[2];
      return "+OK\r\n";
    }
    if (words.size() < 2) return "+OK\r\n";
    const auto found = values_.find(words[1]);
    if (words[0] == "EXISTS") return found == values_.end() ? ":0\r\n" : ":1\r\n";
    if (found == values_.end()) return "$-1\r\n";
    return "$" + std::to_string(found->second.size()) + "\r\n" + found->second + "\r\n";
  }

  std::uint64_t seed_;
  std::atomic<std::uint64_t> commands_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

RemoteOptions options_of(const FakeServer& server, std::uint64_t seed) {
  RemoteOptions options = quick_options(server.redis_url());
  options.request_timeout_ns = 60'000'000;
  options.retry_first_ns = 1'000'000;
  options.retry_last_ns = 5'000'000;
  options.bytes_in_flight_max = seed % 2 == 0 ? 4 * kChaosPageBytes : 100 * kChaosPageBytes;
  if (seed % 3 == 0) options.item_bytes_max = 1000;
  return options;
}

// Room is memory of a read that is on its way, and then ours again.
struct Room {
  std::uint64_t number = 0;
  std::vector<std::byte> page = std::vector<std::byte>(kChaosPageBytes);
  bool is_open = true;
};

class ChaoticRun {
 public:
  explicit ChaoticRun(std::uint64_t seed)
      : seed_(seed),
        redis_(seed),
        server_([this](FakeServer::Peer& peer) { redis_.serve(peer); }),
        store_(RemoteStore::open(options_of(server_, seed)).value()) {
    for (std::uint64_t number = 0; number < kPages; ++number) {
      pages_.push_back(sample_page(number, kChaosPageBytes));
    }
  }

  void ask(std::uint64_t ticket) {
    const std::uint64_t draw = random_bits(seed_, 1, ticket);
    const std::uint64_t number = (draw >> 8) % kPages;
    if (draw % 4 == 0) {
      if (store_->write({ticket, sample_label(number), pages_[number]})) open_.insert(ticket);
    } else if (draw % 4 == 1) {
      const std::vector keys = {sample_label(number).key, sample_label((number + 1) % kPages).key};
      if (!store_->find(ticket, keys).has_value()) open_.insert(ticket);
    } else {
      rooms_[ticket].number = number;
      open_.insert(ticket);
      store_->read({ticket, sample_label(number), rooms_[ticket].page});
      if (draw % 32 == 2) store_->cancel(std::vector{ticket});
    }
  }

  // Gives the server time: an off store refuses everything at once.
  void pause() {
    std::this_thread::sleep_for(1ms);
    (void)store_->await_connection(100'000'000);
  }

  void collect() {
    std::vector<kv::StoreReport> reports;
    store_->poll(reports);
    for (const kv::StoreReport& report : reports) {
      ASSERT_EQ(open_.erase(report.ticket), 1u) << "reported twice, or never asked";
      const auto room = rooms_.find(report.ticket);
      if (room == rooms_.end()) continue;
      if (report.fault == StoreFault::kNone) {
        ++given_back_;
        ASSERT_EQ(room->second.page, pages_[room->second.number]);
      }
      room->second.page.assign(kChaosPageBytes, std::byte{0x5A});
      room->second.is_open = false;
    }
  }

  void check_rooms() const {
    for (const auto& [ticket, room] : rooms_) {
      if (room.is_open) continue;
      ASSERT_EQ(room.page, std::vector<std::byte>(kChaosPageBytes, std::byte{0x5A}))
          << "ticket " << ticket;
    }
  }

  bool is_over() const { return open_.empty(); }
  std::uint64_t given_back() const { return given_back_; }
  kv::StoreStats stats() const { return store_->stats(); }

 private:
  std::uint64_t seed_;
  ChaoticRedis redis_;
  FakeServer server_;
  std::vector<std::vector<std::byte>> pages_;
  std::map<kv::StoreTicket, Room> rooms_;
  std::set<kv::StoreTicket> open_;
  std::uint64_t given_back_ = 0;
  std::unique_ptr<RemoteStore> store_;
};

TEST(RemoteStoreInChaos, ReportsOnceGivesBackWhatWasWrittenAndTouchesNothingLater) {
  std::uint64_t given_back = 0;
  std::uint64_t damaged = 0;
  std::uint64_t timeouts = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ChaoticRun run(seed);
    for (std::uint64_t ticket = 0; ticket < 600; ++ticket) {
      run.ask(ticket);
      if (ticket % 8 == 0) run.pause();
      ASSERT_NO_FATAL_FAILURE(run.collect());
    }
    for (int i = 0; i < 2000 && !run.is_over(); ++i) {
      std::this_thread::sleep_for(1ms);
      ASSERT_NO_FATAL_FAILURE(run.collect());
    }
    ASSERT_TRUE(run.is_over()) << "some ticket was never reported";
    std::this_thread::sleep_for(100ms);  // late replies arrive
    ASSERT_NO_FATAL_FAILURE(run.check_rooms());
    const kv::StoreStats stats = run.stats();
    EXPECT_EQ(stats.requests_queued, 0u);
    given_back += run.given_back();
    damaged += stats.faults[static_cast<std::size_t>(StoreFault::kDamaged)];
    timeouts += stats.faults[static_cast<std::size_t>(StoreFault::kTimeout)];
  }
  // All of it happened, on a busy host too.
  EXPECT_GT(given_back, 20u);
  EXPECT_GT(damaged, 2u);
  EXPECT_GT(timeouts, 2u);
}

}  // namespace
}  // namespace pagoda::store
