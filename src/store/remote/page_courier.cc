#include "store/remote/page_courier.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "store/page_record.h"
#include "store/remote/page_keys.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

// A question is asked in such pieces: what comes after a gap is not asked for.
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

PageCourier::PageCourier(const RemoteOptions& options, const PageCipher* cipher, KnownKeys& known,
                         const Clock& clock, Report report)
    : options_(options),
      cipher_(cipher),
      known_(known),
      clock_(clock),
      report_(std::move(report)),
      last_reply_ns_(clock.now_ns()) {}

void PageCourier::take(Errand errand) {
  auto& queue = waiting_[static_cast<std::size_t>(errand.kind)];
  queue.push_back(std::make_shared<Errand>(std::move(errand)));
}

void PageCourier::cancel(std::span<const kv::StoreTicket> tickets) {
  auto& reads = waiting_[static_cast<std::size_t>(ErrandKind::kRead)];
  for (const Shared& errand : reads) {
    if (std::find(tickets.begin(), tickets.end(), errand->ticket) != tickets.end()) {
      finish(errand, StoreFault::kCancelled);
    }
  }
  std::erase_if(reads, [](const Shared& errand) { return errand->over; });
}

// The first always fits, however large. Writes leave room for reads, which somebody waits for.
bool PageCourier::fits(const Errand& errand, const Exchange& exchange) {
  if (exchange.commands_in_flight() >= kCommandsInFlightMax) return false;
  if (errand.kind == ErrandKind::kQuestion) return true;
  const std::size_t bytes = exchange.bytes_in_flight();
  const std::size_t most = options_.bytes_in_flight_max;
  return bytes == 0 ||
         bytes + errand.page_bytes() <= (errand.kind == ErrandKind::kWrite ? most / 4 : most);
}

void PageCourier::launch(Exchange& exchange) {
  for (auto& queue : waiting_) {
    while (!queue.empty() && fits(*queue.front(), exchange)) {
      const Shared errand = std::move(queue.front());
      queue.pop_front();
      begun_.push_back(errand);
      begin(errand, exchange);
    }
  }
}

void PageCourier::begin(const Shared& errand, Exchange& exchange) {
  switch (errand->kind) {
    case ErrandKind::kQuestion:
      return ask_keys(errand, exchange);
    case ErrandKind::kRead:
      return read(errand, exchange);
    case ErrandKind::kWrite:
      return write(errand, exchange);
  }
}

void PageCourier::expire() {
  const std::int64_t now_ns = clock_.now_ns();
  const auto end_late = [&](const Shared& errand) {
    if (errand->over || errand->deadline_ns > now_ns) return;
    ++timeouts_;
    finish(errand, StoreFault::kTimeout);
  };
  const auto is_over = [](const Shared& errand) { return errand->over; };
  for (const Shared& errand : begun_) end_late(errand);
  std::erase_if(begun_, is_over);
  for (auto& queue : waiting_) {  // in the order of their deadlines
    while (!queue.empty() && queue.front()->deadline_ns <= now_ns) {
      end_late(queue.front());
      queue.pop_front();
    }
  }
}

void PageCourier::abandon() {
  for (const Shared& errand : std::exchange(begun_, {})) finish(errand, StoreFault::kIo);
  for (auto& queue : waiting_) {
    for (const Shared& errand : std::exchange(queue, {})) finish(errand, StoreFault::kOff);
  }
  timeouts_ = 0;
  last_reply_ns_ = clock_.now_ns();
}

std::int64_t PageCourier::next_deadline_ns() const {
  std::int64_t next_ns = kNever;
  for (const Shared& errand : begun_) {
    if (!errand->over) next_ns = std::min(next_ns, errand->deadline_ns);
  }
  for (const auto& queue : waiting_) {
    if (!queue.empty()) next_ns = std::min(next_ns, queue.front()->deadline_ns);
  }
  return next_ns;
}

std::uint64_t PageCourier::first_write() const {
  const auto& writes = waiting_[static_cast<std::size_t>(ErrandKind::kWrite)];
  std::uint64_t first = writes.empty() ? UINT64_MAX : writes.front()->number;
  for (const Shared& errand : begun_) {
    if (errand->kind == ErrandKind::kWrite && !errand->over) {
      first = std::min(first, errand->number);
    }
  }
  return first;
}

bool PageCourier::is_stalled() const {
  return timeouts_ >= options_.timeouts_max &&
         clock_.now_ns() - last_reply_ns_ >= options_.request_timeout_ns / 2;
}

// Questions

void PageCourier::ask_keys(const Shared& errand, Exchange& exchange) {
  const std::size_t first = errand->keys_found;
  const std::size_t end = std::min(first + kKeysAtOnce, errand->keys.size());
  for (std::size_t key = first; key < end; ++key) {
    exchange.send({.verb = Verb::kHolds, .key = page_key(errand->keys[key])}, 0,
                  [this, errand, key, end, &exchange](const Reply& reply) {
                    hear_key(errand, key, end, exchange, reply);
                  });
  }
}

void PageCourier::hear_key(const Shared& errand, std::size_t key, std::size_t chunk_end,
                           Exchange& exchange, const Reply& reply) {
  note(*errand, reply);
  if (errand->over) return;
  if (is_yes(reply)) {
    if (errand->keys_found == key) ++errand->keys_found;
  } else if (is_no(reply)) {
    known_.forget(errand->keys[key]);
  }
  if (key + 1 < chunk_end) return;
  const bool gap = errand->keys_found < chunk_end;
  if (gap || chunk_end == errand->keys.size() || errand->fault != StoreFault::kNone) {
    return finish(errand, errand->fault);
  }
  ask_keys(errand, exchange);
}

// Reads

void PageCourier::read(const Shared& errand, Exchange& exchange) {
  const std::size_t bytes = record_bytes(errand->label.tokens.size(), errand->into.size());
  const std::size_t part_bytes = exchange.dialect().item_bytes_max();
  const std::size_t parts = parts_of(bytes, part_bytes);
  if (parts > kPartsMax) return finish(errand, StoreFault::kAbsent);
  errand->parts_open = parts;
  if (!exchange.dialect().can_list()) ask_generation(errand, exchange);
  const std::string key = page_key(errand->label.key);
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t value_bytes = std::min(part_bytes, bytes - part * part_bytes);
    exchange.send({.verb = Verb::kGet, .key = part_key(key, part, part_bytes)}, value_bytes,
                  [this, errand](Reply& reply) { hear_part(errand, reply); });
  }
}

void PageCourier::hear_part(const Shared& errand, Reply& reply) {
  note(*errand, reply);
  if (errand->over) return;
  if (reply.kind == ReplyKind::kAbsent && errand->fault == StoreFault::kNone) {
    errand->fault = StoreFault::kAbsent;
  }
  if (errand->record.empty()) {
    errand->record = std::move(reply.text);
  } else {
    errand->record += reply.text;
  }
  if (--errand->parts_open > 0) return;
  if (errand->fault == StoreFault::kNone) {
    errand->fault =
        read_record(errand->record, errand->label, errand->generation, cipher_, errand->into);
  }
  finish(errand, errand->fault);
}

// Writes

void PageCourier::write(const Shared& errand, Exchange& exchange) {
  const std::size_t bytes = record_bytes(errand->label.tokens.size(), errand->from.size());
  const std::size_t part_bytes = exchange.dialect().item_bytes_max();
  if (parts_of(bytes, part_bytes) > kPartsMax) {
    errand->refusal =
        fmt::format("a page of {} bytes is more than {} items of {}", bytes, kPartsMax, part_bytes);
    return finish(errand, StoreFault::kNoRoom);
  }
  if (exchange.dialect().can_list()) return write_parts(errand, exchange);
  ask_generation(errand, exchange);
}

void PageCourier::write_parts(const Shared& errand, Exchange& exchange) {
  const Status written =
      write_record(errand->label, errand->generation, errand->from, cipher_, record_);
  if (!written.ok()) {
    errand->refusal = written.error().message;
    return finish(errand, StoreFault::kIo);
  }
  const std::size_t part_bytes = exchange.dialect().item_bytes_max();
  const std::size_t parts = parts_of(record_.size(), part_bytes);
  errand->parts_open = parts;
  for (std::size_t part = parts - 1; part > 0; --part) {
    write_part(errand, part, std::string_view(record_).substr(part * part_bytes, part_bytes),
               exchange);
  }
  const std::string_view first = std::string_view(record_).substr(0, part_bytes);
  if (parts == 1) return write_part(errand, 0, first, exchange);
  errand->record = first;
}

void PageCourier::write_part(const Shared& errand, std::size_t part, std::string_view value,
                             Exchange& exchange) {
  const std::size_t part_bytes = exchange.dialect().item_bytes_max();
  exchange.send({.verb = Verb::kSet,
                 .key = part_key(page_key(errand->label.key), part, part_bytes),
                 .value = value,
                 .ttl_s = options_.ttl_s},
                value.size(), [this, errand, &exchange](const Reply& reply) {
                  note(*errand, reply);
                  if (errand->over) return;
                  --errand->parts_open;
                  const bool taken = reply.kind == ReplyKind::kDone;
                  if (!taken && errand->fault == StoreFault::kNone) errand->fault = StoreFault::kIo;
                  if (errand->fault != StoreFault::kNone) return finish(errand, errand->fault);
                  if (errand->parts_open == 1) {
                    return write_part(errand, 0, errand->record, exchange);
                  }
                  if (errand->parts_open == 0) finish(errand, StoreFault::kNone);
                });
}

// Generations

void PageCourier::ask_generation(const Shared& errand, Exchange& exchange) {
  exchange.send({.verb = Verb::kGeneration, .key = kGenerationOfAll}, 0,
                [this, errand](const Reply& reply) { hear_generation(errand, reply); });
  // The bytes of a write count from here on: it goes on by itself.
  exchange.send({.verb = Verb::kGeneration, .key = generation_key(errand->label.owner)},
                errand->from.size(), [this, errand, &exchange](const Reply& reply) {
                  hear_generation(errand, reply);
                  if (errand->over || errand->kind == ErrandKind::kRead) return;
                  if (errand->fault != StoreFault::kNone) return finish(errand, errand->fault);
                  write_parts(errand, exchange);
                });
}

// The sum changes when either does.
void PageCourier::hear_generation(const Shared& errand, const Reply& reply) {
  note(*errand, reply);
  std::uint64_t number = 0;
  const char* const end = reply.text.data() + reply.text.size();
  const auto [at, error] = std::from_chars(reply.text.data(), end, number);
  if (reply.kind == ReplyKind::kValue && error == std::errc() && at == end) {
    errand->generation += number;
  } else if (errand->fault == StoreFault::kNone) {
    errand->fault = StoreFault::kIo;
  }
}

// Ends

void PageCourier::note(Errand& errand, const Reply& reply) {
  if (reply.kind != ReplyKind::kLost) {
    timeouts_ = 0;
    ++replies_;
    last_reply_ns_ = clock_.now_ns();
  }
  switch (reply.kind) {
    case ReplyKind::kNoRoom:
      errand.fault = StoreFault::kNoRoom;
      break;
    case ReplyKind::kRefused:
    case ReplyKind::kLost:
      errand.fault = StoreFault::kIo;
      break;
    default:
      return;
  }
  errand.refusal = reply.text;
}

void PageCourier::finish(const Shared& errand, StoreFault fault) {
  if (errand->over) return;
  errand->over = true;
  errand->fault = fault;
  errand->record = {};
  learn(*errand);
  report_(*errand);
}

void PageCourier::learn(const Errand& errand) {
  const std::int64_t now_ns = clock_.now_ns();
  if (errand.kind == ErrandKind::kQuestion) {
    for (std::size_t key = 0; key < errand.keys_found; ++key)
      known_.learn(errand.keys[key], now_ns);
    return;
  }
  switch (errand.fault) {
    case StoreFault::kNone:
      return known_.learn(errand.label.key, now_ns);
    case StoreFault::kAbsent:
    case StoreFault::kDamaged:
    case StoreFault::kForeign:
      return known_.forget(errand.label.key);
    default:
      return;
  }
}

}  // namespace pagoda::store
