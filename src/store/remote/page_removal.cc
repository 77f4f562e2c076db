#include "store/remote/page_removal.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "store/page_record.h"
#include "store/remote/page_keys.h"

namespace pagoda::store {

void PageRemoval::start(RemoteConnection& connection) {
  if (connection.protocol().can_list()) return list(0, connection);
  raise_generation(connection);
}

void PageRemoval::end(Result<kv::Removal> result) {
  if (done_) std::exchange(done_, {})(std::move(result), redirected_);
}

bool PageRemoval::expect(const Reply& reply, ReplyKind expected) {
  if (reply.kind == expected) return done_ != nullptr;
  const bool lost = reply.kind == ReplyKind::kLost;
  end(Error{ErrorCode::kIo, fmt::format("after {} pages were removed: {}", removal_.pages,
                                        lost ? "the connection is lost" : reply.text)});
  return false;
}

bool PageRemoval::was_redirected(const Reply& reply) {
  const bool elsewhere = reply.kind == ReplyKind::kRefused &&
                         (reply.text.starts_with("MOVED ") || reply.text.starts_with("ASK ") ||
                          reply.text.starts_with("TRYAGAIN"));
  redirected_ |= elsewhere;
  return elsewhere && done_ != nullptr;
}

bool PageRemoval::expect_if_any(const Reply& reply, ReplyKind expected) {
  return expect(reply, reply.kind == ReplyKind::kAbsent ? ReplyKind::kAbsent : expected);
}

void PageRemoval::raise_generation(RemoteConnection& connection) {
  const std::string key =
      order_.owner ? generation_key(*order_.owner) : std::string(kGenerationOfAll);
  connection.send({.verb = Verb::kGeneration, .key = key, .number = fresh_seed() | 1}, 0,
                  [self = shared_from_this()](const Reply& reply) {
                    if (!self->expect(reply, ReplyKind::kValue)) return;
                    self->removal_.note = fmt::format(
                        "memcached cannot list its keys: what was there can no longer be read, and "
                        "its bytes expire within {} s",
                        self->order_.ttl_s);
                    self->end(self->removal_);
                  });
}

void PageRemoval::list(std::uint64_t cursor, RemoteConnection& connection) {
  connection.send(
      {.verb = Verb::kList, .key = {}, .number = cursor}, 0,
      [self = shared_from_this(), &connection](Reply& reply) {
        if (!self->expect(reply, ReplyKind::kList)) return;
        const bool two = reply.parts.size() == 2 && reply.parts[1].kind == ReplyKind::kList;
        const std::string next = two ? reply.parts[0].text : "";
        const char* const end = next.data() + next.size();
        const auto [at, error] = std::from_chars(next.data(), end, self->cursor_);
        if (error != std::errc() || at != end) {
          return self->end(Error{ErrorCode::kCorrupt, fmt::format("\"{}\" is no cursor", next)});
        }
        self->keys_.clear();
        for (Reply& key : reply.parts[1].parts) {
          self->keys_.push_back({.text = std::move(key.text)});
        }
        self->look(connection);
      });
}

// A node that is being given a slot lists the keys it has got, and shows them only to who asks so.
void PageRemoval::ask(const Command& command, std::size_t value_bytes, RemoteConnection& connection,
                      RemoteConnection::Handler handler) {
  if (order_.is_cluster) connection.send({.verb = Verb::kAsking}, 0, [](const Reply&) {});
  connection.send(command, value_bytes, std::move(handler));
}

// Asks for the head of every key's page, and for the key's own length. A part goes with its page,
// and also when its page is gone: nobody can read the part any more.
void PageRemoval::look(RemoteConnection& connection) {
  replies_open_ = 2 * keys_.size();
  if (keys_.empty()) return go_on(connection);
  for (Key& key : keys_) {
    ask({.verb = Verb::kHead, .key = page_of_key(key.text), .number = kRecordHeadBytes},
        kRecordHeadBytes, connection, [self = shared_from_this(), &key](const Reply& reply) {
          --self->replies_open_;
          if (self->was_redirected(reply)) {
            key.is_elsewhere = true;
          } else if (self->expect_if_any(reply, ReplyKind::kValue)) {
            self->choose(key, reply.text);
          }
        });
    ask({.verb = Verb::kLength, .key = key.text}, 0, connection,
        [self = shared_from_this(), &key, &connection](const Reply& reply) {
          --self->replies_open_;
          if (self->was_redirected(reply)) {
            key.is_elsewhere = true;
          } else if (!self->expect_if_any(reply, ReplyKind::kNumber)) {
            return;
          }
          key.bytes = reply.number;
          if (self->replies_open_ == 0) self->erase(connection);
        });
  }
}

void PageRemoval::choose(Key& key, std::string_view head_bytes) const {
  const std::optional<RecordHead> head = read_head(head_bytes);
  key.chosen = !order_.owner || (head ? head->owner == *order_.owner : is_part_key(key.text));
}

void PageRemoval::erase(RemoteConnection& connection) {
  for (const Key& key : keys_) {
    if (key.chosen && !key.is_elsewhere) erase_key(key, connection);
  }
  if (replies_open_ == 0) go_on(connection);
}

// Counts what was there: a list may name a key twice.
void PageRemoval::erase_key(const Key& key, RemoteConnection& connection) {
  ++replies_open_;
  ask({.verb = Verb::kErase, .key = key.text}, 0, connection,
      [self = shared_from_this(), &key, &connection](const Reply& reply) {
        --self->replies_open_;
        if (!self->was_redirected(reply) && !self->expect(reply, ReplyKind::kNumber)) {
          return;
        }
        if (reply.number > 0) {
          self->removal_.bytes += key.bytes;
          if (!is_part_key(key.text)) ++self->removal_.pages;
        }
        if (self->replies_open_ == 0) self->go_on(connection);
      });
}

void PageRemoval::go_on(RemoteConnection& connection) {
  if (cursor_ != 0 && SteadyClock().now_ns() >= order_.deadline_ns) {
    return end(Error{ErrorCode::kExhausted, fmt::format("after {} pages were removed: the list of "
                                                        "keys has not ended in time",
                                                        removal_.pages)});
  }
  if (cursor_ != 0) return list(cursor_, connection);
  end(removal_);
}

}  // namespace pagoda::store
