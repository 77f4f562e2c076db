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
  bool tls;
  std::string_view port;
};
constexpr Scheme kSchemes[] = {
    {"redis://", RemoteKind::kRedis, false, "6379"},
    {"rediss://", RemoteKind::kRedis, true, "6379"},
    {"memcached://", RemoteKind::kMemcached, false, "11211"},
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
bool take_authority(std::string_view text, RemoteUrl& url) {
  std::string_view host = text;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return false;
    host = text.substr(1, bracket - 1);
    text.remove_prefix(bracket + 1);
    if (!text.empty() && text.front() != ':') return false;
  } else {
    const std::size_t colon = text.find(':');
    host = text.substr(0, colon);
    text = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
  }
  if (host.empty()) return false;
  url.host = host;
  if (text.empty()) return true;
  const auto port = whole_number<std::uint32_t>(text.substr(1), 65535);
  if (!port || *port == 0) return false;
  url.port = fmt::format("{}", *port);
  return true;
}

}  // namespace

std::string RemoteUrl::shown() const {
  const bool redis = kind == RemoteKind::kRedis;
  const std::string_view scheme = !redis ? "memcached" : tls ? "rediss" : "redis";
  const bool brackets = host.find(':') != std::string::npos;
  const std::string where =
      brackets ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
  if (database == 0) return fmt::format("{}://{}", scheme, where);
  return fmt::format("{}://{}/{}", scheme, where, database);
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
  if (scheme == nullptr) return wrong("begins with none of redis://, rediss://, memcached://");
  RemoteUrl url = {.kind = scheme->kind, .tls = scheme->tls, .port = std::string(scheme->port)};
  std::string_view rest = std::string_view(text).substr(scheme->prefix.size());
  if (const std::size_t end = rest.rfind('@'); end != std::string_view::npos) {
    if (url.kind == RemoteKind::kMemcached) return wrong("memcached takes no user or password");
    const std::string_view login = rest.substr(0, end);
    const std::size_t colon = login.find(':');
    if (colon == std::string_view::npos) return wrong("before '@' stands user:password");
    const auto user = unescaped(login.substr(0, colon));
    const auto password = unescaped(login.substr(colon + 1));
    if (!user || !password) return wrong("a '%' in user or password wants two hexadecimal digits");
    url.user = *user;
    url.password = *password;
    if (url.password.empty()) return wrong("the password is empty");
    rest.remove_prefix(end + 1);
  }
  const std::size_t slash = rest.find('/');
  if (!take_authority(rest.substr(0, slash), url))
    return wrong("names no host, or a port that is not 1 to 65535");
  const std::string_view path =
      slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  if (path.empty()) return url;
  if (url.kind == RemoteKind::kMemcached) return wrong("memcached has no databases");
  const auto database = whole_number<std::uint32_t>(path, kDatabaseMax);
  if (!database) {
    return wrong(fmt::format("\"{}\" is no database (0 to {})", path, kDatabaseMax));
  }
  url.database = *database;
  return url;
}

}  // namespace pagoda::store
