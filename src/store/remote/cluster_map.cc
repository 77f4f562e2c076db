#include "store/remote/cluster_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

namespace pagoda::store {
namespace {

constexpr std::size_t kHostBytesMax = 253;  // of a name in the DNS

constexpr std::array<std::uint16_t, 256> crc16_table() {
  std::array<std::uint16_t, 256> table = {};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}
constexpr std::array<std::uint16_t, 256> kCrc16 = crc16_table();

std::string_view hash_tag(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const std::size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

std::optional<std::uint32_t> number_in(std::string_view text, std::uint32_t first,
                                       std::uint32_t last) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value < first || value > last ? std::nullopt : std::optional(value);
}

bool is_host(std::string_view text) {
  return !text.empty() && text != "?" && text.size() <= kHostBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
         });
}

std::optional<NodeAddress> address_of(std::string_view host, std::string_view port,
                                      const NodeAddress& asked) {
  const auto number = number_in(port, 1, 65535);
  if (host.empty()) host = asked.host;
  if (!number || !is_host(host)) return std::nullopt;
  return NodeAddress{std::string(host), fmt::format("{}", *number)};
}

Error untrue(std::string_view what) {
  return {ErrorCode::kCorrupt, fmt::format("it sends a map of slots that cannot be: {}", what)};
}

// host (or nothing), port, and what else is said of a node.
std::optional<NodeAddress> read_node(const Reply& node, const NodeAddress& asked) {
  if (node.kind != ReplyKind::kList || node.parts.size() < 2) return std::nullopt;
  const Reply& host = node.parts[0];
  const Reply& port = node.parts[1];
  const bool named = host.kind == ReplyKind::kValue || host.kind == ReplyKind::kAbsent;
  if (!named || port.kind != ReplyKind::kNumber) return std::nullopt;
  return address_of(host.text, fmt::format("{}", port.number), asked);
}

}  // namespace

std::uint16_t slot_of(std::string_view key) {
  std::uint32_t crc = 0;
  for (const char c : hash_tag(key)) {
    crc = (crc << 8 & 0xFFFF) ^ kCrc16[crc >> 8 ^ static_cast<unsigned char>(c)];
  }
  return static_cast<std::uint16_t>(crc % kSlots);
}

Result<ClusterMap> read_cluster_slots(const Reply& reply, const NodeAddress& asked) {
  if (reply.kind == ReplyKind::kRefused) return Error{ErrorCode::kIo, reply.text};
  if (reply.kind != ReplyKind::kList) return untrue("no list");
  if (reply.parts.empty()) return untrue("no node has any");
  ClusterMap map = {.owner = std::vector<std::uint16_t>(kSlots, ClusterMap::kNobody)};
  std::map<NodeAddress, std::uint16_t> numbers;
  for (const Reply& range : reply.parts) {
    // first, last, the primary, its replicas
    if (range.kind != ReplyKind::kList || range.parts.size() < 3) return untrue("no range");
    const Reply& first = range.parts[0];
    const Reply& last = range.parts[1];
    if (first.kind != ReplyKind::kNumber || last.kind != ReplyKind::kNumber ||
        first.number > last.number || last.number >= kSlots) {
      return untrue("a range that is none");
    }
    const auto address = read_node(range.parts[2], asked);
    if (!address) return untrue("a node without an address");
    const auto [node, is_new] =
        numbers.try_emplace(*address, static_cast<std::uint16_t>(map.nodes.size()));
    if (is_new && map.nodes.size() == kNodesMax) {
      return untrue(fmt::format("more than {} nodes", kNodesMax));
    }
    if (is_new) map.nodes.push_back(*address);
    for (std::size_t slot = first.number; slot <= last.number; ++slot) {
      if (map.owner[slot] != ClusterMap::kNobody) {
        return untrue(fmt::format("slot {} is two nodes'", slot));
      }
      map.owner[slot] = node->second;
    }
  }
  return map;
}

Result<ClusterMap> read_sentinel_reply(const Reply& reply, const std::string& service) {
  if (reply.kind == ReplyKind::kRefused) return Error{ErrorCode::kIo, reply.text};
  if (reply.kind == ReplyKind::kAbsent) {
    return Error{ErrorCode::kNotFound, fmt::format("it knows no service \"{}\"", service)};
  }
  const bool two = reply.kind == ReplyKind::kList && reply.parts.size() == 2 &&
                   reply.parts[0].kind == ReplyKind::kValue &&
                   reply.parts[1].kind == ReplyKind::kValue;
  const auto address = two && !reply.parts[0].text.empty()
                           ? address_of(reply.parts[0].text, reply.parts[1].text, {})
                           : std::nullopt;
  if (!address) return Error{ErrorCode::kCorrupt, "it sends no address"};
  return ClusterMap{.nodes = {*address}, .owner = std::vector<std::uint16_t>(kSlots, 0)};
}

std::optional<Redirection> read_redirection(std::string_view text, const NodeAddress& from) {
  using Kind = Redirection::Kind;
  if (text.starts_with("TRYAGAIN")) return Redirection{.kind = Kind::kTryAgain};
  if (text.starts_with("CLUSTERDOWN") || text.starts_with("MASTERDOWN") ||
      text.starts_with("LOADING")) {
    return Redirection{.kind = Kind::kDown};
  }
  const bool moved = text.starts_with("MOVED ");
  if (!moved && !text.starts_with("ASK ")) return std::nullopt;
  text.remove_prefix(moved ? 6 : 4);
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto slot = number_in(text.substr(0, space), 0, kSlots - 1);
  const std::string_view where = text.substr(space + 1);
  const std::size_t colon = where.rfind(':');
  if (!slot || colon == std::string_view::npos) return std::nullopt;
  const auto address = address_of(where.substr(0, colon), where.substr(colon + 1), from);
  if (!address) return std::nullopt;
  return Redirection{.kind = moved ? Kind::kMoved : Kind::kAsk,
                     .slot = static_cast<std::uint16_t>(*slot),
                     .address = *address};
}

}  // namespace pagoda::store
