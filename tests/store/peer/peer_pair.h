// Two servers as far as they fetch pages from each other: a cache of the test's making behind a
// PeerListener, and a PeerStore with somebody who waits for its reports.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/page_samples.h"
#include "store/peer/peer_auth.h"
#include "store/peer/peer_listener.h"
#include "store/peer/peer_store.h"

namespace pagoda::store {

inline constexpr std::size_t kPeerPageBytes = 20'000;

inline SecretKey peer_key(int number = 1) {
  SecretKey key;
  key.fill(static_cast<std::byte>(number));
  return key;
}

// Pages by number, as page_samples.h makes them.
class PagesToLease final : public kv::PageLessor {
 public:
  std::atomic<std::size_t> pages_max{1000};  // leased at a time
  std::atomic<bool> holds_answers{false};

  void add(std::uint32_t number, kv::OwnerTag owner = {}) {
    const std::lock_guard lock(mutex_);
    const kv::PageLabel label = sample_label(number, owner);
    pages_[label.key] = {label, sample_page(number, kPeerPageBytes), number, 0};
  }
  void lease(std::vector<kv::PageKey> keys,
             std::function<void(std::vector<kv::LeasedPage>)> done) override {
    if (holds_answers) {
      const std::lock_guard lock(mutex_);
      held_.emplace_back(std::move(keys), std::move(done));
      return;
    }
    done(lease_now(keys));
  }
  // How many answers are held once there are so many, or after some seconds.
  std::size_t held(std::size_t wanted) const {
    for (int i = 0; i < 1000 && held_now() < wanted; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return held_now();
  }
  // Gives the first answer that was held: there is nothing, or what there is.
  void answer_next(bool has_pages) {
    const auto [keys, done] = held_.front();
    held_.erase(held_.begin());
    done(has_pages ? lease_now(keys) : std::vector<kv::LeasedPage>());
  }
  std::vector<kv::LeasedPage> lease_now(const std::vector<kv::PageKey>& keys) {
    const std::lock_guard lock(mutex_);
    std::vector<kv::LeasedPage> leased;
    for (const kv::PageKey& key : keys) {
      const auto page = pages_.find(key);
      if (page == pages_.end() || (page->second.leases == 0 && leased_now() >= pages_max)) break;
      ++page->second.leases;
      ++begun_;
      leased.push_back({page->second.label, kv::BlockId(page->second.number), page->second.bytes});
    }
    return leased;
  }
  void end_leases(std::vector<kv::BlockId> blocks) override {
    const std::lock_guard lock(mutex_);
    for (const kv::BlockId block : blocks) {
      for (auto& [key, page] : pages_) {
        if (page.number != block.value()) continue;
        EXPECT_GT(page.leases, 0u) << "a lease ended twice";
        --page.leases;
      }
    }
  }
  std::size_t leases() const {
    const std::lock_guard lock(mutex_);
    std::size_t all = 0;
    for (const auto& [key, page] : pages_) all += page.leases;
    return all;
  }
  std::size_t begun() const {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  // False: leases are still there after some seconds.
  bool all_end() const {
    for (int i = 0; i < 1000 && leases() > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return leases() == 0;
  }

 private:
  struct Page {
    kv::PageLabel label;
    std::vector<std::byte> bytes;
    std::uint32_t number = 0;
    std::size_t leases = 0;
  };
  std::size_t leased_now() const {
    std::size_t count = 0;
    for (const auto& [key, page] : pages_) count += page.leases > 0 ? 1 : 0;
    return count;
  }

  std::size_t held_now() const {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }

  mutable std::mutex mutex_;
  std::vector<std::pair<std::vector<kv::PageKey>, std::function<void(std::vector<kv::LeasedPage>)>>>
      held_;
  std::map<kv::PageKey, Page> pages_;
  std::size_t begun_ = 0;
};

// What a listener or a store tells the operator.
class Notes {
 public:
  std::function<void(const std::string&)> taker() {
    return [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      notes_.push_back(text);
    };
  }
  int count(const std::string& part) const {
    const std::lock_guard lock(mutex_);
    int found = 0;
    for (const std::string& note : notes_) found += note.find(part) != std::string::npos ? 1 : 0;
    return found;
  }
  std::string all() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& note : notes_) text += note + "\n";
    return text;
  }
  bool comes(const std::string& part) const {
    for (int i = 0; i < 1000 && count(part) == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return count(part) > 0;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;
};

struct ServingPeer {
  explicit ServingPeer(PeerListenerOptions options = {}, const std::string& secret = "") {
    options.address = {"127.0.0.1", 0};
    if (options.key == SecretKey{}) options.key = peer_key();
    options.page_bytes = kPeerPageBytes;
    options.note = notes.taker();
    listener = PeerListener::open(std::move(options)).value();
    listener->start(pages, deployment_id(secret));
  }
  ~ServingPeer() { listener->stop(); }

  PeerAddress address() const { return {"127.0.0.1", listener->port()}; }
  // Pages that are not there are handed over as well: there was no room for them.
  void hand_over(const std::vector<kv::PageKey>& keys) {
    std::vector<kv::BlockHash> prompt;
    for (const kv::PageKey& key : keys) prompt.push_back(key.hash);
    listener->take(pages.lease_now(keys), std::move(prompt));
  }

  Notes notes;
  PagesToLease pages;
  std::unique_ptr<PeerListener> listener;
};

inline std::vector<kv::PageKey> keys_of(std::uint32_t first, std::uint32_t end) {
  std::vector<kv::PageKey> keys;
  for (std::uint32_t number = first; number < end; ++number) {
    keys.push_back(sample_label(number).key);
  }
  return keys;
}

inline std::vector<kv::BlockHash> hashes_of(const std::vector<kv::PageKey>& keys) {
  std::vector<kv::BlockHash> hashes;
  for (const kv::PageKey& key : keys) hashes.push_back(key.hash);
  return hashes;
}

inline PeerStoreOptions quick_peer_options(std::vector<PeerAddress> peers) {
  PeerStoreOptions options;
  options.peers = std::move(peers);
  options.allowed = PeerAllowList::parse(kLoopbackHosts).value();
  options.key = peer_key();
  options.page_bytes = kPeerPageBytes;
  options.timeout_ns = 10'000'000'000;
  options.connect_timeout_ns = 5'000'000'000;
  options.retry_first_ns = 10'000'000;
  options.retry_last_ns = 50'000'000;
  return options;
}

class FetchingPeer {
 public:
  explicit FetchingPeer(PeerStoreOptions options, const std::string& secret = "") {
    options.note = notes.taker();
    store_ = PeerStore::open(std::move(options)).value();
    store_->set_deployment(deployment_id(secret));
    store_->on_report([this] {
      const std::lock_guard lock(mutex_);
      ++rings_;
      rung_.notify_all();
    });
  }

  PeerStore& store() { return *store_; }
  bool connects(std::size_t peers = 1) {
    for (int i = 0; i < 1000 && store_->stats().nodes_on < peers; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return store_->stats().nodes_on >= peers;
  }
  std::size_t find(const std::vector<kv::PageKey>& keys) {
    const kv::StoreTicket ticket = next_ticket_++;
    const auto found = store_->find(ticket, keys);
    return found ? *found : await(ticket).keys_found;
  }
  kv::StoreFault read(const kv::PageLabel& label, std::vector<std::byte>& page) {
    const kv::StoreTicket ticket = next_ticket_++;
    store_->read({ticket, label, page});
    return await(ticket).fault;
  }
  // Returns kNone only if the bytes are those of the sample.
  kv::StoreFault read(std::uint32_t number, kv::OwnerTag owner = {}) {
    std::vector<std::byte> page(kPeerPageBytes);
    const kv::StoreFault fault = read(sample_label(number, owner), page);
    if (fault == kv::StoreFault::kNone && page != sample_page(number, kPeerPageBytes)) {
      ADD_FAILURE() << "page " << number << " came with other bytes";
    }
    return fault;
  }
  kv::StoreReport await(kv::StoreTicket ticket) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (;;) {
      std::unique_lock lock(mutex_);
      std::vector<kv::StoreReport> reports;
      store_->poll(reports);
      for (const kv::StoreReport& report : reports) {
        EXPECT_TRUE(ended_.emplace(report.ticket, report).second) << "reported twice";
      }
      if (const auto found = ended_.find(ticket); found != ended_.end()) return found->second;
      const std::uint64_t rings = rings_;
      if (!rung_.wait_until(lock, until, [&] { return rings_ != rings; })) {
        ADD_FAILURE() << "ticket " << ticket << " was never reported";
        return {.ticket = ticket, .fault = kv::StoreFault::kIo};
      }
    }
  }

  Notes notes;

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  std::uint64_t rings_ = 0;
  std::map<kv::StoreTicket, kv::StoreReport> ended_;
  kv::StoreTicket next_ticket_ = 1;
  std::unique_ptr<PeerStore> store_;  // the last member: its thread calls on_report above
};

// A socket that a test speaks through by hand.
class RawClient {
 public:
  // `room_bytes`: how much the system takes for it before it is read; 0: as usual.
  explicit RawClient(std::uint16_t port, int room_bytes = 0)
      : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (room_bytes > 0) {
      (void)::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &room_bytes, sizeof room_bytes);
    }
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
  }
  ~RawClient() { ::close(descriptor_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void say(const std::string& bytes) const {
    (void)::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Returns what comes until the other end closes, or `enough` bytes are there; `closed` says
  // whether it did in time.
  std::string hear(bool& closed, int timeout_ms = 10'000,
                   std::size_t enough = std::string::npos) const {
    std::string heard;
    char room[4096];
    closed = false;
    while (heard.size() < enough) {
      pollfd watched = {descriptor_, POLLIN, 0};
      if (::poll(&watched, 1, timeout_ms) != 1) return heard;
      const ssize_t bytes = ::recv(descriptor_, room, sizeof room, 0);
      closed = bytes <= 0;
      if (closed) return heard;
      heard.append(room, static_cast<std::size_t>(bytes));
    }
    return heard;
  }

 private:
  int descriptor_;
};

}  // namespace pagoda::store
