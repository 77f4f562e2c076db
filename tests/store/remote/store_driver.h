// StoreDriver calls a store and waits for its reports.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/page_record.h"
#include "store/page_samples.h"
#include "store/remote/remote_store.h"

namespace pagoda::store {

// These limits are beyond what a busy host reaches, and attempts to connect again come quickly.
inline RemoteOptions quick_options(const std::string& url) {
  RemoteOptions options;
  options.url = parse_remote_url(url).value();
  options.connect_timeout_ns = 5'000'000'000;
  options.request_timeout_ns = 10'000'000'000;
  options.retry_first_ns = 10'000'000;
  options.retry_last_ns = 50'000'000;
  options.removal_timeout_ns = 20'000'000'000;
  return options;
}

// Returns the record of a public page of StoreDriver::write().
inline std::string record_of(std::uint64_t number);

class StoreDriver {
 public:
  static constexpr std::size_t kPageBytes = 10'000;

  explicit StoreDriver(const RemoteOptions& options) {
    store_ = RemoteStore::open(options).value();
    store_->on_report([this] {
      const std::lock_guard lock(mutex_);
      ++rings_;
      rung_.notify_all();
    });
  }

  RemoteStore& store() { return *store_; }
  bool connect(std::int64_t timeout_ns = 5'000'000'000) {
    return store_->await_connection(timeout_ns).ok();
  }
  // Waits until the store is off and says why.
  bool is_off_because(const std::string& reason) {
    for (int i = 0; i < 1000; ++i) {
      const kv::StoreStats stats = store_->stats();
      if (!stats.is_on && stats.condition.find(reason) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  // Waits until the store has switched itself off.
  bool goes_off(std::int64_t timeout_ms = 5000) {
    for (; timeout_ms > 0 && store_->stats().is_on; timeout_ms -= 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return !store_->stats().is_on;
  }

  // Returns kOff where write() refuses.
  kv::StoreFault write(const kv::PageLabel& label, const std::vector<std::byte>& page) {
    const kv::StoreTicket ticket = next_ticket_++;
    if (!store_->write({ticket, label, page})) return kv::StoreFault::kOff;
    return await(ticket).fault;
  }
  kv::StoreFault write(std::uint64_t number, kv::OwnerTag owner = {},
                       std::size_t bytes = kPageBytes) {
    return write(sample_label(number, owner), sample_page(number, bytes));
  }
  kv::StoreFault read(const kv::PageLabel& label, std::vector<std::byte>& page) {
    const kv::StoreTicket ticket = next_ticket_++;
    store_->read({ticket, label, page});
    return await(ticket).fault;
  }
  // Returns kNone only if the bytes are those of write().
  kv::StoreFault read(std::uint64_t number, kv::OwnerTag owner = {},
                      std::size_t bytes = kPageBytes) {
    std::vector<std::byte> page(bytes);
    const kv::StoreFault fault = read(sample_label(number, owner), page);
    if (fault == kv::StoreFault::kNone && page != sample_page(number, bytes)) {
      ADD_FAILURE() << "page " << number << " came back with other bytes";
    }
    return fault;
  }
  std::size_t find(const std::vector<kv::PageKey>& keys) {
    const kv::StoreTicket ticket = next_ticket_++;
    const auto found = store_->find(ticket, keys);
    return found ? *found : await(ticket).keys_found;
  }

  kv::StoreTicket next_ticket() { return next_ticket_++; }
  kv::StoreReport await(kv::StoreTicket ticket) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (true) {
      std::unique_lock lock(mutex_);
      std::vector<kv::StoreReport> reports;
      store_->poll(reports);
      for (const kv::StoreReport& report : reports) {
        EXPECT_TRUE(ended_.emplace(report.ticket, report).second) << "reported twice";
      }
      const auto found = ended_.find(ticket);
      if (found != ended_.end()) return found->second;
      const std::uint64_t rings = rings_;
      // on_report() alone wakes this thread: a missing call costs the test its time.
      if (!rung_.wait_until(lock, until, [&] { return rings_ != rings; })) {
        ADD_FAILURE() << "ticket " << ticket << " was never reported";
        return {ticket, kv::StoreFault::kIo, 0};
      }
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  std::uint64_t rings_ = 0;
  std::map<kv::StoreTicket, kv::StoreReport> ended_;
  kv::StoreTicket next_ticket_ = 1;
  std::unique_ptr<RemoteStore> store_;  // the last member: its thread calls on_report above
};

inline std::string record_of(std::uint64_t number) {
  std::string record;
  EXPECT_TRUE(write_record(sample_label(number), 0, sample_page(number, StoreDriver::kPageBytes),
                           nullptr, record)
                  .ok());
  return record;
}

}  // namespace pagoda::store
