#include "store/remote/request_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "store/page_record.h"
#include "store/remote/page_keys.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

// A lookup is asked in pieces of so many keys: keys after a gap are not asked for.
constexpr std::size_t kKeysAtOnce = 256;
constexpr std::size_t kCommandsInFlightMax = 4096;

bool is_yes(const Reply& reply) {
  return reply.kind == ReplyKind::kDone || (reply.kind == ReplyKind::kNumber && reply.number > 0);
}
bool is_no(const Reply& reply) {
  return reply.kind == ReplyKind::kAbsent ||
         (reply.kind == ReplyKind::kNumber && reply.number == 0);
}

}  // namespace

RequestPipeline::RequestPipeline(const RemoteOptions& options, const PageCipher* cipher,
                                 KnownKeys& known, const Clock& clock, Report report)
    : options_(options),
      cipher_(cipher),
      known_(known),
      clock_(clock),
      report_(std::move(report)),
      last_reply_ns_(clock.now_ns()) {}

void RequestPipeline::take(StoreRequest request) {
  auto& queue = waiting_[static_cast<std::size_t>(request.kind)];
  queue.push_back(std::make_shared<StoreRequest>(std::move(request)));
}

void RequestPipeline::cancel(std::span<const kv::StoreTicket> tickets) {
  auto& reads = waiting_[static_cast<std::size_t>(RequestKind::kRead)];
  for (const Shared& request : reads) {
    if (std::find(tickets.begin(), tickets.end(), request->ticket) != tickets.end()) {
      finish(request, StoreFault::kCancelled);
    }
  }
  std::erase_if(reads, [](const Shared& request) { return request->over; });
}

// The first request always fits, however large. Writes leave room for reads, which somebody waits
// for.
bool RequestPipeline::fits(const StoreRequest& request, const RemoteConnection& connection) {
  if (connection.commands_in_flight() >= kCommandsInFlightMax) return false;
  if (request.kind == RequestKind::kLookup) return true;
  const std::size_t bytes = connection.bytes_in_flight();
  const std::size_t most = options_.bytes_in_flight_max;
  return bytes == 0 ||
         bytes + request.page_bytes() <= (request.kind == RequestKind::kWrite ? most / 4 : most);
}

void RequestPipeline::launch(RemoteConnection& connection) {
  for (auto& queue : waiting_) {
    while (!queue.empty() && fits(*queue.front(), connection)) {
      const Shared request = std::move(queue.front());
      queue.pop_front();
      begun_.push_back(request);
      begin(request, connection);
    }
  }
}

void RequestPipeline::begin(const Shared& request, RemoteConnection& connection) {
  switch (request->kind) {
    case RequestKind::kLookup:
      return ask_keys(request, connection);
    case RequestKind::kRead:
      return read(request, connection);
    case RequestKind::kWrite:
      return write(request, connection);
  }
}

void RequestPipeline::expire() {
  const std::int64_t now_ns = clock_.now_ns();
  const auto end_late = [&](const Shared& request) {
    if (request->over || request->deadline_ns > now_ns) return;
    ++timeouts_;
    finish(request, StoreFault::kTimeout);
  };
  const auto is_over = [](const Shared& request) { return request->over; };
  for (const Shared& request : begun_) end_late(request);
  std::erase_if(begun_, is_over);
  for (auto& queue : waiting_) {  // requests are in the order of their deadlines
    while (!queue.empty() && queue.front()->deadline_ns <= now_ns) {
      end_late(queue.front());
      queue.pop_front();
    }
  }
}

void RequestPipeline::abandon() {
  for (const Shared& request : std::exchange(begun_, {})) finish(request, StoreFault::kIo);
  for (auto& queue : waiting_) {
    for (const Shared& request : std::exchange(queue, {})) finish(request, StoreFault::kOff);
  }
  timeouts_ = 0;
  last_reply_ns_ = clock_.now_ns();
}

std::int64_t RequestPipeline::next_deadline_ns() const {
  std::int64_t next_ns = kNever;
  for (const Shared& request : begun_) {
    if (!request->over) next_ns = std::min(next_ns, request->deadline_ns);
  }
  for (const auto& queue : waiting_) {
    if (!queue.empty()) next_ns = std::min(next_ns, queue.front()->deadline_ns);
  }
  return next_ns;
}

std::uint64_t RequestPipeline::first_write() const {
  const auto& writes = waiting_[static_cast<std::size_t>(RequestKind::kWrite)];
  std::uint64_t first = writes.empty() ? UINT64_MAX : writes.front()->number;
  for (const Shared& request : begun_) {
    if (request->kind == RequestKind::kWrite && !request->over) {
      first = std::min(first, request->number);
    }
  }
  return first;
}

bool RequestPipeline::is_stalled() const {
  return timeouts_ >= options_.timeouts_max &&
         clock_.now_ns() - last_reply_ns_ >= options_.request_timeout_ns / 2;
}

// Lookups

void RequestPipeline::ask_keys(const Shared& request, RemoteConnection& connection) {
  const std::size_t first = request->keys_found;
  const std::size_t end = std::min(first + kKeysAtOnce, request->keys.size());
  for (std::size_t key = first; key < end; ++key) {
    connection.send({.verb = Verb::kHolds, .key = page_key(request->keys[key])}, 0,
                    [this, request, key, end, &connection](const Reply& reply) {
                      on_key_reply(request, key, end, connection, reply);
                    });
  }
}

void RequestPipeline::on_key_reply(const Shared& request, std::size_t key, std::size_t chunk_end,
                                   RemoteConnection& connection, const Reply& reply) {
  note(*request, reply);
  if (request->over) return;
  if (is_yes(reply)) {
    if (request->keys_found == key) ++request->keys_found;
  } else if (is_no(reply)) {
    known_.forget(request->keys[key]);
  }
  if (key + 1 < chunk_end) return;
  const bool gap = request->keys_found < chunk_end;
  if (gap || chunk_end == request->keys.size() || request->fault != StoreFault::kNone) {
    return finish(request, request->fault);
  }
  ask_keys(request, connection);
}

// Reads

void RequestPipeline::read(const Shared& request, RemoteConnection& connection) {
  const std::size_t bytes = record_bytes(request->label.tokens.size(), request->into.size());
  const std::size_t part_bytes = connection.protocol().item_bytes_max();
  const std::size_t parts = parts_of(bytes, part_bytes);
  if (parts > kPartsMax) return finish(request, StoreFault::kAbsent);
  request->parts_open = parts;
  if (!connection.protocol().can_list()) ask_generation(request, connection);
  const std::string key = page_key(request->label.key);
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t value_bytes = std::min(part_bytes, bytes - part * part_bytes);
    connection.send({.verb = Verb::kGet, .key = part_key(key, part, part_bytes)}, value_bytes,
                    [this, request](Reply& reply) { on_part_reply(request, reply); });
  }
}

void RequestPipeline::on_part_reply(const Shared& request, Reply& reply) {
  note(*request, reply);
  if (request->over) return;
  if (reply.kind == ReplyKind::kAbsent && request->fault == StoreFault::kNone) {
    request->fault = StoreFault::kAbsent;
  }
  if (request->record.empty()) {
    request->record = std::move(reply.text);
  } else {
    request->record += reply.text;
  }
  if (--request->parts_open > 0) return;
  if (request->fault == StoreFault::kNone) {
    request->fault =
        read_record(request->record, request->label, request->generation, cipher_, request->into);
  }
  finish(request, request->fault);
}

// Writes

void RequestPipeline::write(const Shared& request, RemoteConnection& connection) {
  const std::size_t bytes = record_bytes(request->label.tokens.size(), request->from.size());
  const std::size_t part_bytes = connection.protocol().item_bytes_max();
  if (parts_of(bytes, part_bytes) > kPartsMax) {
    request->refusal =
        fmt::format("a page of {} bytes is more than {} items of {}", bytes, kPartsMax, part_bytes);
    return finish(request, StoreFault::kNoRoom);
  }
  if (connection.protocol().can_list()) return write_parts(request, connection);
  ask_generation(request, connection);
}

void RequestPipeline::write_parts(const Shared& request, RemoteConnection& connection) {
  const Status written =
      write_record(request->label, request->generation, request->from, cipher_, record_);
  if (!written.ok()) {
    request->refusal = written.error().message;
    return finish(request, StoreFault::kIo);
  }
  const std::size_t part_bytes = connection.protocol().item_bytes_max();
  const std::size_t parts = parts_of(record_.size(), part_bytes);
  request->parts_open = parts;
  for (std::size_t part = parts - 1; part > 0; --part) {
    write_part(request, part, std::string_view(record_).substr(part * part_bytes, part_bytes),
               connection);
  }
  const std::string_view first = std::string_view(record_).substr(0, part_bytes);
  if (parts == 1) return write_part(request, 0, first, connection);
  request->record = first;
}

void RequestPipeline::write_part(const Shared& request, std::size_t part, std::string_view value,
                                 RemoteConnection& connection) {
  const std::size_t part_bytes = connection.protocol().item_bytes_max();
  connection.send({.verb = Verb::kSet,
                   .key = part_key(page_key(request->label.key), part, part_bytes),
                   .value = value,
                   .ttl_s = options_.ttl_s},
                  value.size(), [this, request, &connection](const Reply& reply) {
                    note(*request, reply);
                    if (request->over) return;
                    --request->parts_open;
                    const bool taken = reply.kind == ReplyKind::kDone;
                    if (!taken && request->fault == StoreFault::kNone)
                      request->fault = StoreFault::kIo;
                    if (request->fault != StoreFault::kNone) return finish(request, request->fault);
                    if (request->parts_open == 1) {
                      return write_part(request, 0, request->record, connection);
                    }
                    if (request->parts_open == 0) finish(request, StoreFault::kNone);
                  });
}

// Generations

void RequestPipeline::ask_generation(const Shared& request, RemoteConnection& connection) {
  connection.send({.verb = Verb::kGeneration, .key = kGenerationOfAll}, 0,
                  [this, request](const Reply& reply) { on_generation_reply(request, reply); });
  // The bytes of a write count from here on: the write goes on by itself.
  connection.send({.verb = Verb::kGeneration, .key = generation_key(request->label.owner)},
                  request->from.size(), [this, request, &connection](const Reply& reply) {
                    on_generation_reply(request, reply);
                    if (request->over || request->kind == RequestKind::kRead) return;
                    if (request->fault != StoreFault::kNone) return finish(request, request->fault);
                    write_parts(request, connection);
                  });
}

// The sum changes when either generation does.
void RequestPipeline::on_generation_reply(const Shared& request, const Reply& reply) {
  note(*request, reply);
  std::uint64_t number = 0;
  const char* const end = reply.text.data() + reply.text.size();
  const auto [at, error] = std::from_chars(reply.text.data(), end, number);
  if (reply.kind == ReplyKind::kValue && error == std::errc() && at == end) {
    request->generation += number;
  } else if (request->fault == StoreFault::kNone) {
    request->fault = StoreFault::kIo;
  }
}

// Ends

void RequestPipeline::note(StoreRequest& request, const Reply& reply) {
  if (reply.kind != ReplyKind::kLost) {
    timeouts_ = 0;
    ++replies_;
    last_reply_ns_ = clock_.now_ns();
  }
  switch (reply.kind) {
    case ReplyKind::kNoRoom:
      request.fault = StoreFault::kNoRoom;
      break;
    case ReplyKind::kRefused:
    case ReplyKind::kLost:
      request.fault = StoreFault::kIo;
      break;
    default:
      return;
  }
  request.refusal = reply.text;
}

void RequestPipeline::finish(const Shared& request, StoreFault fault) {
  if (request->over) return;
  request->over = true;
  request->fault = fault;
  request->record = {};
  learn(*request);
  report_(*request);
}

void RequestPipeline::learn(const StoreRequest& request) {
  const std::int64_t now_ns = clock_.now_ns();
  if (request.kind == RequestKind::kLookup) {
    for (std::size_t key = 0; key < request.keys_found; ++key)
      known_.learn(request.keys[key], now_ns);
    return;
  }
  switch (request.fault) {
    case StoreFault::kNone:
      return known_.learn(request.label.key, now_ns);
    case StoreFault::kAbsent:
    case StoreFault::kDamaged:
    case StoreFault::kForeign:
      return known_.forget(request.label.key);
    default:
      return;
  }
}

}  // namespace pagoda::store
