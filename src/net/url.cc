#include "net/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace pagoda::net {

namespace {

constexpr std::string_view kPlain = "http://";
constexpr std::string_view kTls = "https://";

// A key that goes to another machine goes by the scheme that was said; to this one HTTP will do.
std::string with_scheme(const std::string& text) {
  for (const std::string_view host : {"localhost", "127.0.0.1", "[::1]"}) {
    if (!text.starts_with(host)) continue;
    const bool ends =
        text.size() == host.size() || text[host.size()] == ':' || text[host.size()] == '/';
    if (ends) return std::string(kPlain) + text;
  }
  return text;
}

}  // namespace

Result<Url> parse_url(const std::string& given, const std::string& argument) {
  const std::string text = with_scheme(given);
  Url url;
  url.tls = text.starts_with(kTls);
  if (!url.tls && !text.starts_with(kPlain)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{}: \"{}\" begins neither with http:// nor https://", argument, text)};
  }
  url.port = url.tls ? "443" : "80";
  const std::string rest = text.substr((url.tls ? kTls : kPlain).size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string authority = rest.substr(0, slash);
  if (authority.find('@') != std::string::npos) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{}: a login in the URL is not taken (it is not shown here)", argument)};
  }
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  if (url.path.ends_with("/v1")) url.path.resize(url.path.size() - 3);
  // An IPv6 address stands in brackets.
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.rfind(':');
  if (colon != std::string::npos && (bracket == std::string::npos || colon > bracket)) {
    url.port = authority.substr(colon + 1);
    authority.resize(colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']')) {
    authority = authority.substr(1, authority.size() - 2);
  }
  url.host = authority;
  if (url.host.empty() || url.port.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: \"{}\" names no host", argument, text)};
  }
  return url;
}

}  // namespace pagoda::net
