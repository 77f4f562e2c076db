// The fixture has a disk store in a folder of its own, called by one thread that waits for its
// reports.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/disk/disk_store.h"
#include "store/disk/page_samples.h"
#include "temporary_folder.h"

namespace pagoda::store {

inline DiskOptions fixture_options(const std::string& path, std::uint64_t slots = 64) {
  DiskOptions options;
  options.path = path;
  options.page_bytes = 6000;
  options.block_tokens = 4;
  const SlotGeometry geometry = {options.page_bytes, options.block_tokens};
  options.bytes_max = 2 * kIoAlignment + slots * (geometry.slot_bytes() + kRecordBytes);
  options.scrub_bytes_per_s = 0;
  return options;
}

class StoreFixture {
 public:
  explicit StoreFixture(const DiskOptions& options)
      : StoreFixture(options, DiskStore::open(options)) {}
  StoreFixture(const DiskOptions& options, std::unique_ptr<FileLayer> layer)
      : StoreFixture(options, DiskStore::open(options, std::move(layer))) {}

  DiskStore& store() { return *store_; }

  void wait_until_ready() {
    while (!store_->stats().is_ready) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // Returns the report of a ticket, waited for by on_report().
  kv::StoreReport report_of(kv::StoreTicket ticket) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      std::vector<kv::StoreReport> reports;
      store_->poll(reports);
      for (const kv::StoreReport& report : reports) {
        EXPECT_TRUE(reports_.emplace(report.ticket, report).second) << "reported twice";
      }
      if (const auto found = reports_.find(ticket); found != reports_.end()) return found->second;
      std::unique_lock lock(mutex_);
      if (!rung_.wait_until(lock, deadline, [this] { return is_rung_; })) {
        ADD_FAILURE() << "no report of ticket " << ticket;
        return {};
      }
      is_rung_ = false;
    }
  }
  kv::StoreFault write(std::uint64_t number, std::uint64_t owner = 0) {
    const std::vector<std::byte> page = sample_page(number, 0, options_.page_bytes);
    const kv::StoreTicket ticket = ++ticket_;
    if (!store_->write({ticket, sample_label(number, options_.block_tokens, owner), page})) {
      return kv::StoreFault::kOff;
    }
    return report_of(ticket).fault;
  }
  // kNone: the page came, and was the right one.
  kv::StoreFault read(std::uint64_t number, std::uint64_t owner = 0) {
    return read(number, sample_label(number, options_.block_tokens, owner));
  }
  kv::StoreFault read(std::uint64_t number, const kv::PageLabel& label) {
    std::vector<std::byte> page(options_.page_bytes);
    const kv::StoreTicket ticket = ++ticket_;
    store_->read({ticket, label, page});
    const kv::StoreReport report = report_of(ticket);
    if (report.fault == kv::StoreFault::kNone) {
      EXPECT_EQ(page, sample_page(number, 0, options_.page_bytes));
    }
    return report.fault;
  }
  bool finds(std::uint64_t number) {
    const kv::PageKey key = sample_label(number, options_.block_tokens).key;
    const kv::StoreTicket ticket = ++ticket_;
    const auto found = store_->find(ticket, std::span(&key, 1));
    return (found ? *found : report_of(ticket).keys_found) == 1;
  }
  kv::StoreTicket next_ticket() { return ++ticket_; }

 private:
  StoreFixture(const DiskOptions& options, Result<std::unique_ptr<DiskStore>> opened)
      : options_(options) {
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
    store_ = std::move(opened).value();
    store_->on_report([this] {
      const std::lock_guard lock(mutex_);
      is_rung_ = true;
      rung_.notify_one();
    });
  }

  DiskOptions options_;
  std::mutex mutex_;
  std::condition_variable rung_;
  bool is_rung_ = false;
  std::map<kv::StoreTicket, kv::StoreReport> reports_;
  kv::StoreTicket ticket_ = 0;
  std::unique_ptr<DiskStore> store_;
};

}  // namespace pagoda::store
