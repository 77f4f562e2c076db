// ScriptedStore is a tier whose reads, and if asked writes and lookups, end when and how a test
// says.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "kv/tiers/page_store.h"

namespace pagoda::engine {

class ScriptedStore final : public kv::PageStore {
 public:
  std::string_view name() const override { return "scripted"; }
  bool asks_network() const override { return is_remote; }
  std::optional<std::size_t> find(kv::StoreTicket ticket,
                                  std::span<const kv::PageKey> keys) override {
    ++finds;
    if (holds_finds) {
      held_finds.push_back(ticket);
      return std::nullopt;
    }
    const auto absent = std::find_if(keys.begin(), keys.end(),
                                     [&](const auto& key) { return !pages.contains(key); });
    return static_cast<std::size_t>(absent - keys.begin());
  }
  bool keeps(const kv::PageKey& key) override { return pages.contains(key); }

  std::int64_t expect(std::span<const kv::BlockHash> /*hashes*/,
                      const kv::PageOrigin& /*origin*/) override {
    return expects_ns;
  }

  void read(kv::PageRead read) override {
    reads.push_back(std::move(read));
    if (!holds_reads) end_reads([](const kv::PageRead&) { return true; });
  }
  bool write(kv::PageWrite write) override {
    if (is_busy) return false;
    if (holds_writes) {
      writes.push_back(std::move(write));
      return true;
    }
    keep(write);
    return true;
  }
  bool takes_writes() const override { return true; }
  void cancel(std::span<const kv::StoreTicket> tickets) override {
    end_reads(
        [&](const kv::PageRead& read) {
          return std::find(tickets.begin(), tickets.end(), read.ticket) != tickets.end();
        },
        kv::StoreFault::kCancelled);
  }
  void poll(std::vector<kv::StoreReport>& reports) override {
    reports.insert(reports.end(), ended_.begin(), ended_.end());
    ended_.clear();
  }
  void on_report(std::function<void()> /*notify*/) override {}
  Result<kv::Removal> remove(const kv::OwnerTag& owner) override {
    ++removals;
    const std::size_t removed =
        std::erase_if(pages, [&](const auto& entry) { return entry.second.label.owner == owner; });
    return kv::Removal{.pages = removed};
  }
  Result<kv::Removal> remove_all() override {
    pages.clear();
    return kv::Removal{};
  }
  Status flush(std::int64_t /*timeout_ns*/) override { return ok_status(); }
  kv::StoreStats stats() const override { return {}; }

  // Ends the running reads that `which` selects: with their page, or with a fault.
  void end_reads(const std::function<bool(const kv::PageRead&)>& which,
                 kv::StoreFault fault = kv::StoreFault::kNone) {
    std::erase_if(reads, [&](const kv::PageRead& read) {
      if (!which(read)) return false;
      if (fault == kv::StoreFault::kNone) {
        const std::vector<std::byte>& bytes = pages.at(read.label.key).bytes;
        std::copy(bytes.begin(), bytes.end(), read.page.begin());
      }
      ended_.push_back({.ticket = read.ticket, .fault = fault});
      return true;
    });
  }
  // Ends the lookups that were held: nothing is there.
  void end_finds() {
    for (const kv::StoreTicket ticket : held_finds) ended_.push_back({.ticket = ticket});
    held_finds.clear();
  }
  void end_writes() {
    for (const kv::PageWrite& write : writes) keep(write);
    writes.clear();
  }

  struct Page {
    kv::PageLabel label;
    std::vector<std::byte> bytes;
  };
  std::map<kv::PageKey, Page> pages;
  std::vector<kv::PageRead> reads;    // running reads
  std::vector<kv::PageWrite> writes;  // running writes, while they are held
  std::vector<kv::StoreTicket> held_finds;
  bool holds_reads = true;
  bool holds_finds = false;
  std::int64_t expects_ns = 0;  // how long pages are waited for that another server computes
  bool holds_writes = false;
  bool is_busy = false;  // too much waits already: the store takes no write now
  bool is_remote = false;
  std::uint64_t removals = 0;
  std::uint64_t finds = 0;

 private:
  void keep(const kv::PageWrite& write) {
    pages[write.label.key] = {write.label, {write.page.begin(), write.page.end()}};
    ended_.push_back({.ticket = write.ticket});
  }

  std::vector<kv::StoreReport> ended_;
};

}  // namespace pagoda::engine
