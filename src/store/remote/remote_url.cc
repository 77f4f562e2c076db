#include "store/remote/remote_url.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

namespace pagoda::store {
namespace {

constexpr std::uint32_t kDatabaseMax = 1'000'000;

struct Scheme {
  std::string_view prefix;
  RemoteKind kind;
  RemoteLayout layout;
  bool tls;
  std::string_view port;
};
constexpr Scheme kSchemes[] = {
    {"redis://", RemoteKind::kRedis, RemoteLayout::kServer, false, "6379"},
    {"rediss://", RemoteKind::kRedis, RemoteLayout::kServer, true, "6379"},
    {"redis-cluster://", RemoteKind::kRedis, RemoteLayout::kCluster, false, "6379"},
    {"rediss-cluster://", RemoteKind::kRedis, RemoteLayout::kCluster, true, "6379"},
    {"redis-sentinel://", RemoteKind::kRedis, RemoteLayout::kSentinel, false, "26379"},
    {"rediss-sentinel://", RemoteKind::kRedis, RemoteLayout::kSentinel, true, "26379"},
    {"memcached://", RemoteKind::kMemcached, RemoteLayout::kServer, false, "11211"},
};

template <class Number>
std::optional<Number> whole_number(std::string_view text, Number max) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > max) return std::nullopt;
  return value;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
    plain += static_cast<char>(value);
    i += 2;
  }
  return plain;
}

// Splits host[:port]; an IPv6 address stands in brackets.
std::optional<NodeAddress> read_address(std::string_view text, std::string_view port_default) {
  std::string_view host = text;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return std::nullopt;
    host = text.substr(1, bracket - 1);
    text.remove_prefix(bracket + 1);
    if (!text.empty() && text.front() != ':') return std::nullopt;
  } else {
    const std::size_t colon = text.find(':');
    host = text.substr(0, colon);
    text = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
  }
  if (host.empty()) return std::nullopt;
  if (text.empty()) return NodeAddress{std::string(host), std::string(port_default)};
  const auto port = whole_number<std::uint32_t>(text.substr(1), 65535);
  if (!port || *port == 0) return std::nullopt;
  return NodeAddress{std::string(host), fmt::format("{}", *port)};
}

// Reads addresses between commas. False: one of them is none.
bool read_addresses(std::string_view text, std::string_view port_default, RemoteUrl& url) {
  while (true) {
    const std::size_t comma = text.find(',');
    const auto address = read_address(text.substr(0, comma), port_default);
    if (!address) return false;
    url.addresses.push_back(*address);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

// Returns what is wrong with the login, or nothing.
std::string_view read_login(std::string_view login, RemoteUrl& url) {
  if (url.kind == RemoteKind::kMemcached) return "memcached takes no user or password";
  const std::size_t colon = login.find(':');
  if (colon == std::string_view::npos) return "before '@' stands user:password";
  const auto user = unescaped(login.substr(0, colon));
  const auto password = unescaped(login.substr(colon + 1));
  if (!user || !password) return "a '%' in user or password wants two hexadecimal digits";
  url.user = *user;
  url.password = *password;
  return url.password.empty() ? "the password is empty" : "";
}

// The same for what follows the addresses.
std::string read_path(std::string_view path, RemoteUrl& url) {
  if (url.layout == RemoteLayout::kSentinel) {
    const std::size_t slash = path.find('/');
    url.service = path.substr(0, slash);
    if (url.service.empty()) return "names no service: sentinels know a server by its name";
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  if (path.empty()) return "";
  if (url.kind == RemoteKind::kMemcached) return "memcached has no databases";
  if (url.layout == RemoteLayout::kCluster) return "a cluster has no databases";
  const auto database = whole_number<std::uint32_t>(path, kDatabaseMax);
  if (!database) return fmt::format("\"{}\" is no database (0 to {})", path, kDatabaseMax);
  url.database = *database;
  return "";
}

}  // namespace

std::string NodeAddress::shown() const {
  const bool brackets = host.find(':') != std::string::npos;
  return brackets ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string RemoteUrl::shown() const {
  std::string text;
  for (const Scheme& each : kSchemes) {
    if (each.kind == kind && each.layout == layout && each.tls == tls) text = each.prefix;
  }
  for (const NodeAddress& each : addresses) {
    if (&each != &addresses.front()) text += ',';
    text += each.shown();
  }
  if (!service.empty()) text += "/" + service;
  if (database != 0) text += fmt::format("/{}", database);
  return text;
}

Result<RemoteUrl> parse_remote_url(const std::string& text) {
  const Scheme* scheme = nullptr;
  for (const Scheme& each : kSchemes) {
    if (text.starts_with(each.prefix)) scheme = &each;
  }
  // The part before the last '@' may hold a password.
  const std::size_t at = text.rfind('@');
  const std::string named =
      at == std::string::npos
          ? text
          : fmt::format("{}…{}", scheme == nullptr ? "" : scheme->prefix, text.substr(at));
  const auto wrong = [&](std::string_view what) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("remote store \"{}\": {}", named, what)};
  };
  if (scheme == nullptr) {
    return wrong(
        "begins with none of redis://, redis-cluster://, redis-sentinel:// (rediss… for TLS), "
        "memcached://");
  }
  RemoteUrl url = {.kind = scheme->kind, .layout = scheme->layout, .tls = scheme->tls};
  std::string_view rest = std::string_view(text).substr(scheme->prefix.size());
  if (const std::size_t end = rest.rfind('@'); end != std::string_view::npos) {
    const std::string_view fault = read_login(rest.substr(0, end), url);
    if (!fault.empty()) return wrong(fault);
    rest.remove_prefix(end + 1);
  }
  const std::size_t slash = rest.find('/');
  if (!read_addresses(rest.substr(0, slash), scheme->port, url))
    return wrong("names no host, or a port that is not 1 to 65535");
  if (url.addresses.size() > 1 && url.layout == RemoteLayout::kServer)
    return wrong("several addresses are those of redis-cluster:// or redis-sentinel://");
  if (url.addresses.size() > kAddressesMax)
    return wrong(fmt::format("has more than {} addresses", kAddressesMax));
  const std::string fault =
      read_path(slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1), url);
  if (!fault.empty()) return wrong(fault);
  return url;
}

}  // namespace pagoda::store
