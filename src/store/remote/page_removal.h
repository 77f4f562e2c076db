// PageRemoval removes an owner's pages, or all, from one server: by looking at every key where keys
// can be listed, else by a new generation, under which no page written before is read. It runs on
// the store's thread. StoreRemoval does so on all servers of a store.
//
// Memcached lists its keys neither completely nor always, and its flush_all would remove keys of
// other programs. So every record there carries the sum of two numbers that the server keeps, one
// of its owner and one of all, and is absent to a reader who finds another sum. Numbers are random
// where there is none: a number that was evicted loses pages, and never brings back removed ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kv/tiers/page_store.h"
#include "store/remote/remote_connection.h"

namespace pagoda::store {

struct RemovalOrder {
  std::optional<kv::OwnerTag> owner = {};  // none: all pages
  std::uint32_t ttl_s = 0;                 // for the note
  std::int64_t deadline_ns = 0;            // a list of keys that has not ended by then is an error
  bool is_cluster = false;
};

class PageRemoval : public std::enable_shared_from_this<PageRemoval> {
 public:
  // `redirected`: keys were listed that are another node's, or on their way there.
  using Done = std::function<void(Result<kv::Removal>, bool redirected)>;

  PageRemoval(const RemovalOrder& order, Done done) : order_(order), done_(std::move(done)) {}

  // Call once. The removal lives as long as replies are expected.
  void start(RemoteConnection& connection);

 private:
  struct Key {
    std::string text;
    bool chosen = false;
    bool is_elsewhere = false;  // another node's by now
    std::size_t bytes = 0;
  };

  void raise_generation(RemoteConnection& connection);
  void list(std::uint64_t cursor, RemoteConnection& connection);
  void look(RemoteConnection& connection);
  void choose(Key& key, std::string_view head_bytes) const;
  void erase(RemoteConnection& connection);
  void erase_key(const Key& key, RemoteConnection& connection);
  void go_on(RemoteConnection& connection);
  // False: the reply is of another kind, and the removal has failed.
  bool expect(const Reply& reply, ReplyKind expected);
  // Expects the same where the key may be gone, or hold something that is no value.
  bool expect_if_any(const Reply& reply, ReplyKind expected);
  bool was_redirected(const Reply& reply);
  // Sends a command for a key that the server has listed.
  void ask(const Command& command, std::size_t value_bytes, RemoteConnection& connection,
           RemoteConnection::Handler handler);
  void end(Result<kv::Removal> result);

  RemovalOrder order_;
  Done done_;
  kv::Removal removal_;
  bool redirected_ = false;
  std::uint64_t cursor_ = 0;
  std::vector<Key> keys_;  // keys that the cursor brought
  std::size_t replies_open_ = 0;
};

}  // namespace pagoda::store
