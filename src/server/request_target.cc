#include "server/request_target.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/ascii.h"

namespace pagoda::server {
namespace {

std::string small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

bool all_of(std::string_view text, auto is_allowed) {
  return std::all_of(text.begin(), text.end(), is_allowed);
}

bool is_hexadecimal(char c) {
  return is_ascii_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Is `c` a character of RFC 3986's reg-name?
bool is_name_character(char c) {
  constexpr std::string_view kOthers = "-._~%!$&'()*+,;=";
  return is_ascii_digit(c) || is_ascii_letter(c) || kOthers.find(c) != std::string_view::npos;
}

bool is_address_character(char c) { return is_hexadecimal(c) || c == ':' || c == '.'; }

// Splits "/v1/models?a=1" into path and query.
void read_path(std::string_view text, RequestTarget& target) {
  const std::size_t mark = text.find('?');
  target.path = text.substr(0, mark);
  if (mark != std::string_view::npos) target.query = text.substr(mark + 1);
}

std::optional<RequestTarget> read_url(std::string_view url) {
  const std::size_t begin = url.find("://");
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string scheme = small_letters(url.substr(0, begin));
  if (scheme != "http" && scheme != "https") return std::nullopt;
  url.remove_prefix(begin + 3);
  const std::size_t end = std::min(url.find_first_of("/?#"), url.size());
  RequestTarget target = {.path = "/", .authority = std::string(url.substr(0, end))};
  const std::optional<std::string> host = host_of(*target.authority);
  if (!host || host->empty()) return std::nullopt;
  url.remove_prefix(end);
  if (url.starts_with('/')) read_path(url, target);
  if (url.starts_with('?')) target.query = url.substr(1);
  return target;
}

}  // namespace

std::optional<RequestTarget> read_target(std::string_view method, std::string_view target) {
  if (target.starts_with('/')) {
    RequestTarget read;
    read_path(target, read);
    return read;
  }
  if (target == "*" && method == "OPTIONS") return RequestTarget{.path = "*"};
  return read_url(target);
}

std::optional<std::string> host_of(std::string_view authority) {
  const bool is_address = authority.starts_with('[');
  const std::size_t end = is_address ? authority.find(']') : authority.find(':');
  if (is_address && end == std::string_view::npos) return std::nullopt;
  std::string_view host = authority.substr(0, end);
  std::string_view port = authority.substr(std::min(end, authority.size()));
  if (is_address) {
    host.remove_prefix(1);
    port.remove_prefix(1);
  }
  const bool has_good_port =
      port.empty() || (port.front() == ':' && all_of(port.substr(1), is_ascii_digit));
  if (!has_good_port || !all_of(host, is_address ? is_address_character : is_name_character)) {
    return std::nullopt;
  }
  if (!is_address && host.ends_with('.')) host.remove_suffix(1);
  return small_letters(host);
}

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  std::optional<std::string> value;
  while (!query.empty()) {
    const std::string_view parameter = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(parameter.size() + 1, query.size()));
    const std::size_t equals = std::min(parameter.find('='), parameter.size());
    if (percent_decoded(parameter.substr(0, equals)) != name) continue;
    const std::string_view given = parameter.substr(std::min(equals + 1, parameter.size()));
    value = percent_decoded(given).value_or(std::string(given));
  }
  return value;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  while (!text.empty()) {
    if (text.front() != '%') {
      decoded += text.front();
      text.remove_prefix(1);
      continue;
    }
    unsigned char byte = 0;
    if (text.size() < 3 || !is_hexadecimal(text[1]) || !is_hexadecimal(text[2])) {
      return std::nullopt;
    }
    std::from_chars(text.data() + 1, text.data() + 3, byte, 16);
    decoded += static_cast<char>(byte);
    text.remove_prefix(3);
  }
  return decoded;
}

}  // namespace pagoda::server
