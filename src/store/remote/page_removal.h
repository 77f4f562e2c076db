// PageRemoval removes an owner's pages, or all, from a server: by looking at every key where keys
// can be listed, else by a new generation, under which no page written before is read. It runs on
// the store's thread.
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

class PageRemoval : public std::enable_shared_from_this<PageRemoval> {
 public:
  using Done = std::function<void(Result<kv::Removal>)>;

  // No owner: all pages. `ttl_s` is for the note.
  PageRemoval(std::optional<kv::OwnerTag> owner, std::uint32_t ttl_s, Done done)
      : owner_(owner), ttl_s_(ttl_s), done_(std::move(done)) {}

  // Call once. The removal lives as long as replies are expected.
  void start(RemoteConnection& connection);

 private:
  struct Key {
    std::string text;
    bool chosen = false;
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
  void end(Result<kv::Removal> result);

  std::optional<kv::OwnerTag> owner_;
  std::uint32_t ttl_s_;
  Done done_;
  kv::Removal removal_;
  std::uint64_t cursor_ = 0;
  std::vector<Key> keys_;  // keys that the cursor brought
  std::size_t replies_open_ = 0;
};

}  // namespace pagoda::store
