#include "store/remote/page_removal.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/random.h"
#include "store/page_record.h"
#include "store/remote/page_keys.h"

namespace pagoda::store {

void PageRemoval::start(Exchange& exchange) {
  if (exchange.dialect().can_list()) return list(0, exchange);
  turn_generation(exchange);
}

void PageRemoval::end(Result<kv::Removal> result) {
  if (done_) std::exchange(done_, {})(std::move(result));
}

bool PageRemoval::hear(const Reply& reply, ReplyKind expected) {
  if (reply.kind == expected) return done_ != nullptr;
  const bool lost = reply.kind == ReplyKind::kLost;
  end(Error{ErrorCode::kIo, fmt::format("after {} pages were removed: {}", removal_.pages,
                                        lost ? "the connection is lost" : reply.text)});
  return false;
}

void PageRemoval::turn_generation(Exchange& exchange) {
  const std::string key = owner_ ? generation_key(*owner_) : std::string(kGenerationOfAll);
  exchange.send({.verb = Verb::kGeneration, .key = key, .number = fresh_seed() | 1}, 0,
                [self = shared_from_this()](const Reply& reply) {
                  if (!self->hear(reply, ReplyKind::kValue)) return;
                  self->removal_.note = fmt::format(
                      "memcached cannot list its keys: what was there can no longer be read, and "
                      "its bytes expire within {} s",
                      self->ttl_s_);
                  self->end(self->removal_);
                });
}

void PageRemoval::list(std::uint64_t cursor, Exchange& exchange) {
  exchange.send(
      {.verb = Verb::kList, .key = {}, .number = cursor}, 0,
      [self = shared_from_this(), &exchange](Reply& reply) {
        if (!self->hear(reply, ReplyKind::kList)) return;
        const std::string& next = reply.items.front();
        const char* const end = next.data() + next.size();
        const auto [at, error] = std::from_chars(next.data(), end, self->cursor_);
        if (error != std::errc() || at != end) {
          return self->end(Error{ErrorCode::kCorrupt, fmt::format("\"{}\" is no cursor", next)});
        }
        self->pages_.clear();
        for (std::size_t i = 1; i < reply.items.size(); ++i) {
          if (self->owner_ && is_part_key(reply.items[i])) continue;
          self->pages_.push_back({.key = std::move(reply.items[i])});
        }
        self->look(exchange);
      });
}

// Head and length of every page; a part has no head of its own, and goes with its page.
void PageRemoval::look(Exchange& exchange) {
  replies_open_ = 2 * pages_.size();
  if (pages_.empty()) return go_on(exchange);
  for (Page& page : pages_) {
    exchange.send({.verb = Verb::kHead, .key = page.key, .number = kRecordHeadBytes},
                  kRecordHeadBytes, [self = shared_from_this(), &page](const Reply& reply) {
                    --self->replies_open_;
                    if (self->hear(reply, ReplyKind::kValue)) self->hear_head(page, reply);
                  });
    exchange.send({.verb = Verb::kLength, .key = page.key}, 0,
                  [self = shared_from_this(), &page, &exchange](const Reply& reply) {
                    --self->replies_open_;
                    if (!self->hear(reply, ReplyKind::kNumber)) return;
                    page.first_bytes = reply.number;
                    if (self->replies_open_ == 0) self->erase(exchange);
                  });
  }
}

void PageRemoval::hear_head(Page& page, const Reply& reply) {
  const std::optional<RecordHead> head = read_head(reply.text);
  if (head) page.bytes = record_bytes(head->tokens, head->page_bytes);
  page.chosen = !owner_ || (head && head->owner == *owner_);
}

void PageRemoval::erase(Exchange& exchange) {
  for (const Page& page : pages_) {
    if (!page.chosen) continue;
    if (!is_part_key(page.key)) ++removal_.pages;
    if (!owner_) {  // parts are listed too
      removal_.bytes += page.first_bytes;
      erase_key(page.key, exchange);
      continue;
    }
    removal_.bytes += page.bytes;
    const std::size_t parts = page.first_bytes == 0 ? 1 : parts_of(page.bytes, page.first_bytes);
    for (std::size_t part = 0; part < std::min(parts, kPartsMax); ++part) {
      erase_key(part_key(page.key, part, page.first_bytes), exchange);
    }
  }
  if (replies_open_ == 0) go_on(exchange);
}

void PageRemoval::erase_key(const std::string& key, Exchange& exchange) {
  ++replies_open_;
  exchange.send({.verb = Verb::kErase, .key = key}, 0,
                [self = shared_from_this(), &exchange](const Reply& reply) {
                  --self->replies_open_;
                  if (!self->hear(reply, ReplyKind::kNumber)) return;
                  if (self->replies_open_ == 0) self->go_on(exchange);
                });
}

void PageRemoval::go_on(Exchange& exchange) {
  if (cursor_ != 0) return list(cursor_, exchange);
  end(removal_);
}

}  // namespace pagoda::store
