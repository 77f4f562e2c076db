#include "store/peer/peer_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace pagoda::store {
namespace {

constexpr std::size_t kPeerHostBytesMax = 255;
constexpr std::size_t kEntriesMax = 256;

using AddressBytes = std::array<unsigned char, 16>;

std::optional<AddressBytes> read_address(const std::string& text, bool& is_v4) {
  AddressBytes bytes = {};
  is_v4 = false;
  if (text.find('\0') != std::string::npos) return std::nullopt;  // C would stop there
  is_v4 = inet_pton(AF_INET, text.c_str(), bytes.data() + 12) == 1;
  if (is_v4) {
    bytes[10] = bytes[11] = 0xff;
    return bytes;
  }
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  return std::nullopt;
}

std::string normal_name(std::string_view text) {
  std::string name(text);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (name.ends_with('.')) name.pop_back();
  return name;
}

bool is_in(const AddressBytes& address, const AddressBytes& network, unsigned bits) {
  for (unsigned bit = 0; bit < bits; bit += 8) {
    const unsigned left = std::min(8u, bits - bit);
    const auto mask = static_cast<unsigned char>(0xff << (8 - left));
    if (((address[bit / 8] ^ network[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace

std::string PeerAddress::shown() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

Result<PeerAddress> parse_peer_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const Error wrong = {
      ErrorCode::kInvalidArgument,
      fmt::format("\"{}\" is not HOST:PORT", text.substr(0, kPeerHostBytesMax + 8))};
  if (colon == std::string_view::npos) return wrong;
  PeerAddress address;
  const std::string_view port = text.substr(colon + 1);
  const auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  std::string_view host = text.substr(0, colon);
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  const bool is_plain = is_bracketed || host.find(':') == std::string_view::npos;
  if (fault != std::errc() || end != port.data() + port.size() || address.port == 0 ||
      host.empty() || host.size() > kPeerHostBytesMax || !is_plain) {
    return wrong;
  }
  const bool is_text =
      std::all_of(host.begin(), host.end(), [](char c) { return c > ' ' && c < 127; });
  if (!is_text) return wrong;
  address.host = normal_name(host);
  return address;
}

Result<std::vector<PeerAddress>> parse_peer_addresses(std::string_view text) {
  std::vector<PeerAddress> addresses;
  for (const std::string_view part : split_at_commas(text)) {
    ASSIGN_OR_RETURN(PeerAddress address, parse_peer_address(part));
    addresses.push_back(std::move(address));
  }
  return addresses;
}

Result<PeerAllowList> PeerAllowList::parse(std::string_view text) {
  PeerAllowList list;
  const std::vector<std::string_view> entries = split_at_commas(text);
  if (entries.size() > kEntriesMax) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("has {} entries, at most {} are taken", entries.size(), kEntriesMax)};
  }
  for (const std::string_view entry : entries) {
    const Error wrong = {ErrorCode::kInvalidArgument,
                         fmt::format("\"{}\" is no name, address or network", entry)};
    if (entry.empty() || entry.size() > kPeerHostBytesMax) return wrong;
    const std::size_t slash = entry.find('/');
    bool is_v4 = false;
    const auto address = read_address(std::string(entry.substr(0, slash)), is_v4);
    if (!address) {
      if (slash != std::string_view::npos) return wrong;
      list.names_.push_back(normal_name(entry));
      continue;
    }
    Network network = {.address = *address};
    if (slash != std::string_view::npos) {
      const std::string_view bits = entry.substr(slash + 1);
      const auto [end, fault] =
          std::from_chars(bits.data(), bits.data() + bits.size(), network.bits);
      const bool is_number = fault == std::errc() && end == bits.data() + bits.size();
      if (!is_number || network.bits > (is_v4 ? 32u : 128u)) return wrong;
      network.bits += is_v4 ? 96 : 0;
    }
    list.networks_.push_back(network);
  }
  return list;
}

void PeerAllowList::add_host(const std::string& host) {
  bool is_v4 = false;
  if (const auto address = read_address(host, is_v4)) {
    networks_.push_back({.address = *address});
  } else {
    names_.push_back(normal_name(host));
  }
}

bool PeerAllowList::allows(const std::string& host) const {
  bool is_v4 = false;
  if (const auto address = read_address(host, is_v4)) {
    return std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
      return is_in(*address, network.address, network.bits);
    });
  }
  const std::string name = normal_name(host);
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

}  // namespace pagoda::store
