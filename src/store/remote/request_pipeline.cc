#include "store/remote/request_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "store/page_record.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

constexpr std::int64_t kParkedNs = 50'000'000;
constexpr std::size_t kEmptyLanesMax = 64;

}  // namespace

RequestPipeline::RequestPipeline(const RemoteOptions& options, const PageCipher* cipher,
                                 KnownKeys& known, const Clock& clock, NodeSet& nodes,
                                 Report report)
    : options_(options),
      cipher_(cipher),
      known_(known),
      clock_(clock),
      nodes_(nodes),
      report_(std::move(report)) {}

void RequestPipeline::send_asking(NodeLink& node) {
  node.connection().send({.verb = Verb::kAsking}, 0, [](const Reply&) {});
}

// Waiting

void RequestPipeline::take(StoreRequest request) {
  const auto shared = std::make_shared<StoreRequest>(std::move(request));
  if (shared->kind == RequestKind::kLookup) return lookups_.push_back(shared);
  shared->key = page_key(shared->label.key, form());
  shared->slot = nodes_.slot_of_key(shared->key);
  put(shared);
}

void RequestPipeline::put(const Shared& request) {
  Lane& lane = lanes_[nodes_.node_of(request->slot)];
  Queue& queue = request->kind == RequestKind::kRead ? lane.reads : lane.writes;
  const auto at = std::upper_bound(
      queue.begin(), queue.end(), request->number,
      [](std::uint64_t number, const Shared& each) { return number < each->number; });
  queue.insert(at, request);
}

void RequestPipeline::cancel(std::span<const kv::StoreTicket> tickets) {
  for (auto& [node, lane] : lanes_) {
    for (const Shared& request : lane.reads) {
      if (std::find(tickets.begin(), tickets.end(), request->ticket) != tickets.end()) {
        finish(request, StoreFault::kCancelled);
      }
    }
    std::erase_if(lane.reads, [](const Shared& request) { return request->over; });
  }
}

// The first request always fits, however large. Writes leave room for reads, which somebody waits
// for.
bool RequestPipeline::fits(const StoreRequest& request, const RemoteConnection& connection) const {
  if (connection.commands_in_flight() >= kCommandsInFlightMax) return false;
  const std::size_t bytes = connection.bytes_in_flight();
  const std::size_t most = options_.bytes_in_flight_max;
  return bytes == 0 ||
         bytes + request.page_bytes() <= (request.kind == RequestKind::kWrite ? most / 4 : most);
}

void RequestPipeline::launch() {
  resume_parked();
  launch_lookups();
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& [node, lane] : lanes_) {
      moved |= launch_queue(node, lane.reads);
      moved |= launch_queue(node, lane.writes);
    }
  }
  if (lanes_.size() < kEmptyLanesMax) return;
  std::erase_if(lanes_, [](const auto& each) {
    return each.second.reads.empty() && each.second.writes.empty();
  });
}

// Returns whether requests went to another node's queue.
bool RequestPipeline::launch_queue(NodeLink* node, Queue& queue) {
  bool moved = false;
  while (!queue.empty()) {
    NodeLink* const owner = nodes_.node_of(queue.front()->slot);
    const bool is_on = owner != nullptr && owner->is_on();
    if (is_on && owner == node && !fits(*queue.front(), node->connection())) return moved;
    const Shared request = std::move(queue.front());
    queue.pop_front();
    if (!is_on) {
      finish(request, StoreFault::kOff);
    } else if (owner != node) {
      put(request);
      moved = true;
    } else {
      begun_.push_back(request);
      begin(request, *node);
    }
  }
  return moved;
}

void RequestPipeline::begin(const Shared& request, NodeLink& node, bool asking) {
  request->node = &node;
  request->record.clear();
  if (request->kind == RequestKind::kRead) return read(request, node, asking);
  write(request, node, asking);
}

// Ends

void RequestPipeline::end_late(const Shared& request, NodeLink* node) {
  if (request->over || request->deadline_ns > clock_.now_ns()) return;
  if (node != nullptr) node->count_timeout();
  std::vector<NodeLink*> late;
  for (const LookupKey& key : request->asked) {
    if (key.state == LookupKey::State::kAsked && key.node != nullptr) late.push_back(key.node);
  }
  std::sort(late.begin(), late.end());
  late.erase(std::unique(late.begin(), late.end()), late.end());
  for (NodeLink* each : late) each->count_timeout();
  finish(request, StoreFault::kTimeout);
}

void RequestPipeline::expire() {
  const std::int64_t now_ns = clock_.now_ns();
  const auto is_over = [](const Shared& request) { return request->over; };
  for (const Shared& request : begun_) end_late(request, request->node);
  std::erase_if(begun_, is_over);
  const auto expire_queue = [&](Queue& queue) {
    while (!queue.empty() && queue.front()->deadline_ns <= now_ns) {
      const Shared request = std::move(queue.front());
      queue.pop_front();
      const bool waits_for_one = request->kind != RequestKind::kLookup;
      end_late(request, waits_for_one ? nodes_.node_of(request->slot) : nullptr);
    }
  };
  expire_queue(lookups_);
  for (auto& [node, lane] : lanes_) {
    expire_queue(lane.reads);
    expire_queue(lane.writes);
  }
}

void RequestPipeline::abandon() {
  for (const Shared& request : std::exchange(begun_, {})) finish(request, StoreFault::kIo);
  parked_.clear();
  for (const Shared& request : std::exchange(lookups_, {})) finish(request, StoreFault::kOff);
  for (auto& [node, lane] : std::exchange(lanes_, {})) {
    for (const Shared& request : lane.reads) finish(request, StoreFault::kOff);
    for (const Shared& request : lane.writes) finish(request, StoreFault::kOff);
  }
}

std::int64_t RequestPipeline::next_deadline_ns() const {
  std::int64_t next_ns = kNever;
  for (const Shared& request : begun_) {
    if (!request->over) next_ns = std::min(next_ns, request->deadline_ns);
  }
  for (const Parked& each : parked_) next_ns = std::min(next_ns, each.until_ns);
  const auto look_at = [&](const Queue& queue) {
    if (!queue.empty()) next_ns = std::min(next_ns, queue.front()->deadline_ns);
  };
  look_at(lookups_);
  for (const auto& [node, lane] : lanes_) {
    look_at(lane.reads);
    look_at(lane.writes);
  }
  return next_ns;
}

std::uint64_t RequestPipeline::first_write() const {
  std::uint64_t first = UINT64_MAX;
  for (const auto& [node, lane] : lanes_) {
    if (!lane.writes.empty()) first = std::min(first, lane.writes.front()->number);
  }
  for (const Shared& request : begun_) {
    if (request->kind == RequestKind::kWrite && !request->over) {
      first = std::min(first, request->number);
    }
  }
  return first;
}

// Reads

void RequestPipeline::read(const Shared& request, NodeLink& node, bool asking) {
  RemoteConnection& connection = node.connection();
  const std::size_t bytes = record_bytes(request->label.tokens.size(), request->into.size());
  const std::size_t part_bytes = connection.protocol().item_bytes_max();
  const std::size_t parts = parts_of(bytes, part_bytes);
  if (parts > kPartsMax) return finish(request, StoreFault::kAbsent);
  request->parts_open = parts;
  if (!connection.protocol().can_list()) ask_generation(request, node);
  for (std::size_t part = 0; part < parts; ++part) {
    if (asking) send_asking(node);
    const std::size_t value_bytes = std::min(part_bytes, bytes - part * part_bytes);
    connection.send({.verb = Verb::kGet, .key = part_key(request->key, part, part_bytes)},
                    value_bytes, [this, request, is_whole = parts == 1](Reply& reply) {
                      on_part_reply(request, is_whole, reply);
                    });
  }
}

void RequestPipeline::on_part_reply(const Shared& request, bool is_whole, Reply& reply) {
  if (request->over) return;
  note(*request, reply);
  if (reply.kind == ReplyKind::kAbsent && request->fault == StoreFault::kNone) {
    request->fault = StoreFault::kAbsent;
  }
  if (!is_whole) request->record += reply.text;
  if (--request->parts_open > 0) return;
  if (request->redirection && request->fault == StoreFault::kNone) {
    return follow_redirection(request);
  }
  if (request->fault == StoreFault::kNone) {
    request->fault = read_record(is_whole ? reply.text : request->record, request->label,
                                 request->generation, cipher_, request->into);
  }
  finish(request, request->fault);
}

// Writes

void RequestPipeline::write(const Shared& request, NodeLink& node, bool asking) {
  const std::size_t bytes = record_bytes(request->label.tokens.size(), request->from.size());
  const Protocol& protocol = node.connection().protocol();
  if (parts_of(bytes, protocol.item_bytes_max()) > kPartsMax) {
    request->refusal = fmt::format("a page of {} bytes is more than {} items of {}", bytes,
                                   kPartsMax, protocol.item_bytes_max());
    return finish(request, StoreFault::kNoRoom);
  }
  if (protocol.can_list()) return write_parts(request, node, asking);
  ask_generation(request, node);
}

void RequestPipeline::write_parts(const Shared& request, NodeLink& node, bool asking) {
  const std::size_t bytes = record_bytes(request->label.tokens.size(), request->from.size());
  const std::size_t part_bytes = node.connection().protocol().item_bytes_max();
  const std::size_t parts = parts_of(bytes, part_bytes);
  request->parts_open = parts;
  if (parts == 1) return write_part(request, node, 0, {}, asking);
  const Status written =
      write_record(request->label, request->generation, request->from, cipher_, record_);
  if (!written.ok()) {
    request->refusal = written.error().message;
    return finish(request, StoreFault::kIo);
  }
  request->record = record_.substr(0, part_bytes);
  for (std::size_t part = parts - 1; part > 0 && !request->over; --part) {
    write_part(request, node, part, std::string_view(record_).substr(part * part_bytes, part_bytes),
               asking);
  }
}

// No value: the part is the whole record, which is written where it is sent from.
void RequestPipeline::write_part(const Shared& request, NodeLink& node, std::size_t part,
                                 std::string_view value, bool asking) {
  RemoteConnection& connection = node.connection();
  const std::size_t part_bytes = connection.protocol().item_bytes_max();
  const std::size_t bytes = value.empty()
                                ? record_bytes(request->label.tokens.size(), request->from.size())
                                : value.size();
  if (asking) send_asking(node);
  const auto fill = [&](std::span<std::byte> room) -> Status {
    if (value.empty()) {
      return write_record(request->label, request->generation, request->from, cipher_, room);
    }
    std::ranges::copy(std::as_bytes(std::span(value)), room.begin());
    return ok_status();
  };
  const Status sent =
      connection.send_value(part_key(request->key, part, part_bytes), bytes, options_.ttl_s, fill,
                            [this, request, &node, asking](const Reply& reply) {
                              on_written(request, node, asking, reply);
                            });
  if (sent.ok()) return;
  request->refusal = sent.error().message;
  finish(request, StoreFault::kIo);
}

// The first part of several goes last.
void RequestPipeline::on_written(const Shared& request, NodeLink& node, bool asking,
                                 const Reply& reply) {
  if (request->over) return;
  note(*request, reply);
  --request->parts_open;
  const bool fine = reply.kind == ReplyKind::kDone || request->redirection;
  if (!fine && request->fault == StoreFault::kNone) request->fault = StoreFault::kIo;
  if (request->fault != StoreFault::kNone) return finish(request, request->fault);
  if (request->parts_open > 1) return;
  if (request->redirection) return follow_redirection(request);
  if (request->parts_open == 0) return finish(request, StoreFault::kNone);
  write_part(request, node, 0, request->record, asking);
}

// Generations

void RequestPipeline::ask_generation(const Shared& request, NodeLink& node) {
  RemoteConnection& connection = node.connection();
  connection.send({.verb = Verb::kGeneration, .key = kGenerationOfAll}, 0,
                  [this, request](const Reply& reply) { on_generation_reply(request, reply); });
  // The bytes of a write count from here on: the write goes on by itself.
  connection.send({.verb = Verb::kGeneration, .key = generation_key(request->label.owner)},
                  request->from.size(), [this, request, &node](const Reply& reply) {
                    on_generation_reply(request, reply);
                    if (request->over || request->kind == RequestKind::kRead) return;
                    if (request->fault != StoreFault::kNone) return finish(request, request->fault);
                    write_parts(request, node, false);
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

// Redirections

// A page goes as a whole to where one of its commands was sent.
void RequestPipeline::follow_redirection(const Shared& request) {
  const Redirection to = *std::exchange(request->redirection, std::nullopt);
  const bool moved = to.kind == Redirection::Kind::kMoved;
  if (to.kind != Redirection::Kind::kAsk) nodes_.doubt_map();
  const bool lies = (moved || to.kind == Redirection::Kind::kAsk) && to.slot != request->slot;
  if (to.kind == Redirection::Kind::kDown || lies || ++request->redirections > kRedirectionsMax) {
    return finish(request, StoreFault::kIo);
  }
  request->refusal.clear();
  NodeLink* const node = nodes_.node_at(to.address);  // null of kTryAgain: it has none
  if (node == nullptr) return park(request);
  if (moved) nodes_.give_slot(to.slot, *node);
  if (!node->is_on()) return park(request);
  begin(request, *node, !moved);
}

void RequestPipeline::park(const Shared& request) {
  request->node = nullptr;
  parked_.push_back({request, clock_.now_ns() + kParkedNs});
}

void RequestPipeline::resume_parked() {
  if (parked_.empty()) return;
  const std::int64_t now_ns = clock_.now_ns();
  for (const Parked& each : std::exchange(parked_, {})) {
    const Shared& request = each.request;
    if (request->over) continue;
    NodeLink* const node = nodes_.node_of(request->slot);
    if (each.until_ns > now_ns) {
      parked_.push_back(each);
    } else if (node != nullptr && node->is_on()) {
      begin(request, *node);
    } else if (++request->redirections > kRedirectionsMax) {
      finish(request, StoreFault::kOff);
    } else {
      park(request);
    }
  }
}

// Replies

void RequestPipeline::note(StoreRequest& request, const Reply& reply) {
  switch (reply.kind) {
    case ReplyKind::kNoRoom:
      request.fault = StoreFault::kNoRoom;
      break;
    case ReplyKind::kRefused:
      if (nodes_.is_cluster() && request.node != nullptr) {
        request.redirection = read_redirection(reply.text, request.node->address());
        if (request.redirection) ++redirections_;
      }
      if (!request.redirection) request.fault = StoreFault::kIo;
      // A primary that became a replica: the sentinels know the new one.
      if (reply.text.starts_with("READONLY") || reply.text.starts_with("MOVED")) nodes_.doubt_map();
      break;
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
