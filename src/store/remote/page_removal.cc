#include "store/remote/page_removal.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/random.h"
#include "store/page_record.h"
#include "store/remote/page_keys.h"

namespace pagoda::store {

void PageRemoval::start(RemoteConnection& connection) {
  if (connection.protocol().can_list()) return list(0, connection);
  raise_generation(connection);
}

void PageRemoval::end(Result<kv::Removal> result) {
  if (done_) std::exchange(done_, {})(std::move(result));
}

bool PageRemoval::expect(const Reply& reply, ReplyKind expected) {
  if (reply.kind == expected) return done_ != nullptr;
  const bool lost = reply.kind == ReplyKind::kLost;
  end(Error{ErrorCode::kIo, fmt::format("after {} pages were removed: {}", removal_.pages,
                                        lost ? "the connection is lost" : reply.text)});
  return false;
}

bool PageRemoval::expect_if_any(const Reply& reply, ReplyKind expected) {
  return expect(reply, reply.kind == ReplyKind::kAbsent ? ReplyKind::kAbsent : expected);
}

void PageRemoval::raise_generation(RemoteConnection& connection) {
  const std::string key = owner_ ? generation_key(*owner_) : std::string(kGenerationOfAll);
  connection.send({.verb = Verb::kGeneration, .key = key, .number = fresh_seed() | 1}, 0,
                  [self = shared_from_this()](const Reply& reply) {
                    if (!self->expect(reply, ReplyKind::kValue)) return;
                    self->removal_.note = fmt::format(
                        "memcached cannot list its keys: what was there can no longer be read, and "
                        "its bytes expire within {} s",
                        self->ttl_s_);
                    self->end(self->removal_);
                  });
}

void PageRemoval::list(std::uint64_t cursor, RemoteConnection& connection) {
  connection.send(
      {.verb = Verb::kList, .key = {}, .number = cursor}, 0,
      [self = shared_from_this(), &connection](Reply& reply) {
        if (!self->expect(reply, ReplyKind::kList)) return;
        const std::string& next = reply.items.front();
        const char* const end = next.data() + next.size();
        const auto [at, error] = std::from_chars(next.data(), end, self->cursor_);
        if (error != std::errc() || at != end) {
          return self->end(Error{ErrorCode::kCorrupt, fmt::format("\"{}\" is no cursor", next)});
        }
        self->keys_.clear();
        for (std::size_t i = 1; i < reply.items.size(); ++i) {
          self->keys_.push_back({.text = std::move(reply.items[i])});
        }
        self->look(connection);
      });
}

// Asks for the head of every key's page, and for the key's own length. A part goes with its page,
// and also when its page is gone: nobody can read the part any more.
void PageRemoval::look(RemoteConnection& connection) {
  replies_open_ = 2 * keys_.size();
  if (keys_.empty()) return go_on(connection);
  for (Key& key : keys_) {
    connection.send({.verb = Verb::kHead, .key = page_of_key(key.text), .number = kRecordHeadBytes},
                    kRecordHeadBytes, [self = shared_from_this(), &key](const Reply& reply) {
                      --self->replies_open_;
                      if (self->expect_if_any(reply, ReplyKind::kValue))
                        self->choose(key, reply.text);
                    });
    connection.send({.verb = Verb::kLength, .key = key.text}, 0,
                    [self = shared_from_this(), &key, &connection](const Reply& reply) {
                      --self->replies_open_;
                      if (!self->expect_if_any(reply, ReplyKind::kNumber)) return;
                      key.bytes = reply.number;
                      if (self->replies_open_ == 0) self->erase(connection);
                    });
  }
}

void PageRemoval::choose(Key& key, std::string_view head_bytes) const {
  const std::optional<RecordHead> head = read_head(head_bytes);
  key.chosen = !owner_ || (head ? head->owner == *owner_ : is_part_key(key.text));
}

void PageRemoval::erase(RemoteConnection& connection) {
  for (const Key& key : keys_) {
    if (key.chosen) erase_key(key, connection);
  }
  if (replies_open_ == 0) go_on(connection);
}

// Counts what was there: a list may name a key twice.
void PageRemoval::erase_key(const Key& key, RemoteConnection& connection) {
  ++replies_open_;
  connection.send({.verb = Verb::kErase, .key = key.text}, 0,
                  [self = shared_from_this(), &key, &connection](const Reply& reply) {
                    --self->replies_open_;
                    if (!self->expect(reply, ReplyKind::kNumber)) return;
                    if (reply.number > 0) {
                      self->removal_.bytes += key.bytes;
                      if (!is_part_key(key.text)) ++self->removal_.pages;
                    }
                    if (self->replies_open_ == 0) self->go_on(connection);
                  });
}

void PageRemoval::go_on(RemoteConnection& connection) {
  if (cursor_ != 0) return list(cursor_, connection);
  end(removal_);
}

}  // namespace pagoda::store
