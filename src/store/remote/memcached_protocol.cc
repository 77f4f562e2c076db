#include "store/remote/memcached_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/assert.h"
#include "base/random.h"

namespace pagoda::store {
namespace {

constexpr std::size_t kLineBytesMax = 2048;
constexpr std::size_t kStatisticsMax = 1024;
constexpr std::string_view kLineEnd = "\r\n";
// An item's own header, its key and its suffix count against the server's limit as well.
constexpr std::size_t kItemOverhead = 1024;
constexpr std::size_t kItemBytesMin = 4096;
// Parsed bytes stay in front of the rest until there are this many.
constexpr std::size_t kBytesDropped = 1u << 20;

std::string_view word_of(std::string_view line) { return line.substr(0, line.find(' ')); }

std::optional<std::size_t> number_of(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error not_understood(std::string_view line) {
  return {ErrorCode::kCorrupt, fmt::format("memcached answered \"{}\"", line.substr(0, 80))};
}

}  // namespace

std::size_t MemcachedProtocol::begin_handshake(std::string& out) {
  out += "stats settings\r\nmn\r\n";
  return 2;
}

Status MemcachedProtocol::take_handshake_reply(const Reply& reply) {
  if (reply.kind == ReplyKind::kDone) return ok_status();
  if (reply.kind != ReplyKind::kList) {
    return Error{ErrorCode::kUnsupported, fmt::format("memcached answered: {}", reply.text)};
  }
  constexpr std::string_view kName = "item_size_max ";
  for (const Reply& part : reply.parts) {
    const std::string_view setting = part.text;
    if (!setting.starts_with(kName)) continue;
    const auto bytes = number_of(setting.substr(kName.size()));
    if (!bytes) break;
    const std::size_t most = *bytes - std::min(*bytes, kItemOverhead);
    item_bytes_max_ = asked_bytes_max_ == 0 ? most : std::min(most, asked_bytes_max_);
    if (item_bytes_max_ >= kItemBytesMin) return ok_status();
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("memcached takes items of {} bytes; at least {} are needed", *bytes,
                             kItemBytesMin + kItemOverhead)};
  }
  return Error{ErrorCode::kUnsupported, "memcached does not say its item_size_max"};
}

void MemcachedProtocol::encode(const Command& command, std::string& out) {
  const auto to = std::back_inserter(out);
  switch (command.verb) {
    case Verb::kGet:
      fmt::format_to(to, "mg {} v\r\n", command.key);
      return;
    case Verb::kHolds:
      fmt::format_to(to, "mg {}\r\n", command.key);
      return;
    case Verb::kGeneration:
      fmt::format_to(to, "ma {} N0 J{} D{} v\r\n", command.key, fresh_seed(), command.number);
      return;
    case Verb::kErase:
    case Verb::kList:
    case Verb::kHead:
    case Verb::kLength:
    case Verb::kSlots:
    case Verb::kAsking:
    case Verb::kPrimary:
      break;
  }
  ASSERT(false, "memcached has no such command, and can_list() says so");
}

std::size_t MemcachedProtocol::encode_set(std::string_view key, std::size_t value_bytes,
                                          std::uint32_t ttl_s, std::string& out) {
  const std::string begin = fmt::format("ms {} {} T{}\r\n", key, value_bytes, ttl_s);
  out.resize(begin.size() + value_bytes + kLineEnd.size());
  out.replace(0, begin.size(), begin);
  out.replace(begin.size() + value_bytes, kLineEnd.size(), kLineEnd);
  return begin.size();
}

Status MemcachedProtocol::feed(std::string_view bytes) {
  buffer_ += bytes;
  return ok_status();
}

void MemcachedProtocol::drop(std::size_t bytes) {
  at_ += bytes;
  if (at_ < buffer_.size() && at_ < kBytesDropped) return;
  buffer_.erase(0, at_);
  at_ = 0;
}

Result<std::optional<Reply>> MemcachedProtocol::take_value(std::string_view line,
                                                           std::size_t line_end) {
  const auto bytes = number_of(word_of(line.substr(3)));
  if (!bytes || *bytes > value_bytes_max_) return not_understood(line);
  const std::string_view rest = std::string_view(buffer_).substr(line_end + kLineEnd.size());
  if (rest.size() < *bytes + kLineEnd.size()) return std::optional<Reply>();
  if (rest.substr(*bytes, kLineEnd.size()) != kLineEnd) return not_understood(line);
  Reply reply = {.kind = ReplyKind::kValue, .text = std::string(rest.substr(0, *bytes))};
  drop(line_end + 2 * kLineEnd.size() + *bytes - at_);
  return std::optional<Reply>(std::move(reply));
}

Result<std::optional<Reply>> MemcachedProtocol::take_statistic(std::string_view line) {
  if (statistics_.parts.size() == kStatisticsMax) return not_understood(line);
  statistics_.parts.push_back({.kind = ReplyKind::kValue, .text = std::string(line.substr(5))});
  drop(line.size() + kLineEnd.size());
  return next();
}

Result<std::optional<Reply>> MemcachedProtocol::next() {
  const std::size_t end = buffer_.find(kLineEnd, at_);
  if (end == std::string::npos) {
    if (buffer_.size() - at_ > kLineBytesMax) return not_understood("a line without an end");
    return std::optional<Reply>();
  }
  const std::string_view line = std::string_view(buffer_).substr(at_, end - at_);
  const std::string_view word = word_of(line);
  if (line.starts_with("VA ")) return take_value(line, end);
  if (line.starts_with("STAT ")) return take_statistic(line);
  Reply reply;
  if (word == "HD" || word == "MN") {
    reply.kind = ReplyKind::kDone;
  } else if (word == "EN" || word == "NF") {
    reply.kind = ReplyKind::kAbsent;
  } else if (word == "NS") {
    reply = {.kind = ReplyKind::kRefused, .text = std::string(line)};
  } else if (word == "END") {
    reply = std::exchange(statistics_, {});
    reply.kind = ReplyKind::kList;
  } else if (word == "SERVER_ERROR") {
    const bool full = line.find("out of memory") != std::string_view::npos ||
                      line.find("too large") != std::string_view::npos;
    reply = {.kind = full ? ReplyKind::kNoRoom : ReplyKind::kRefused, .text = std::string(line)};
  } else {
    // After ERROR and CLIENT_ERROR the server may take a value for commands.
    return not_understood(line);
  }
  drop(line.size() + kLineEnd.size());
  return std::optional<Reply>(std::move(reply));
}

}  // namespace pagoda::store
