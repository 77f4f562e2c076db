// Mail is left for the listener's thread by the cache's, and by whoever stops the listener.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/event_fd.h"
#include "store/peer/peer_listener.h"

namespace pagoda::store {

// Shared: an answer of the cache may come after the listener is gone.
struct PeerListener::Mail {
  struct Letters {
    std::vector<std::pair<std::uint64_t, std::vector<kv::LeasedPage>>> found;  // of a find
    struct Page {  // of a read: one or none
      LeaseBook::Holder client = 0;
      kv::PageKey key = {};
      std::vector<kv::LeasedPage> pages;
    };
    std::vector<Page> pages;
    struct Prompt {
      std::vector<kv::LeasedPage> pages;
      std::vector<kv::BlockHash> blocks;
    };
    std::vector<Prompt> taken;
    std::vector<std::optional<kv::OwnerTag>> revoked;
    std::unique_ptr<const net::TlsServer> certificate;  // null: as before
  };

  template <class Change>
  void leave(Change&& change) {
    {
      const std::lock_guard lock(mutex);
      change(*this);
    }
    wakeup.notify();
  }
  Letters take() {
    const std::lock_guard lock(mutex);
    return std::exchange(letters, {});
  }

  std::mutex mutex;
  Letters letters;  // under mutex
  std::atomic<bool> is_stopping{false};
  EventFd wakeup;
};

}  // namespace pagoda::store
