#include "net/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace pagoda::net {

Result<Url> parse_url(const std::string& text, const std::string& argument) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
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
