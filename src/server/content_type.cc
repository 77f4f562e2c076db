#include "server/content_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/ascii.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr std::string_view kJsonType = "application/json";

// Who says nothing says one of these: curl -d the first, fetch() of a text the second.
constexpr std::array<std::string_view, 2> kSaidByDefault = {"application/x-www-form-urlencoded",
                                                            "text/plain"};

char lower_letter(char c) { return is_ascii_letter(c) ? static_cast<char>(c | 0x20) : c; }

// Parameters, such as a charset, may follow the name.
bool is_media_type(std::string_view type, std::string_view name) {
  if (type.size() < name.size()) return false;
  const bool is_named = std::equal(name.begin(), name.end(), type.begin(),
                                   [](char a, char b) { return a == lower_letter(b); });
  const std::string_view rest = type.substr(name.size());
  return is_named && (rest.empty() || rest.front() == ';' || rest.front() == ' ');
}

bool says_nothing(std::string_view type) {
  return type.empty() ||
         std::any_of(kSaidByDefault.begin(), kSaidByDefault.end(),
                     [&](std::string_view name) { return is_media_type(type, name); });
}

}  // namespace

void check_content_type(const HttpRequest& request) {
  const std::string& type = request.content_type;
  if (request.body.empty() || is_media_type(type, kJsonType)) return;
  const bool is_ollama = style_of(request.path) == ApiStyle::kOllama;
  if (is_ollama && says_nothing(type) && request.origin.empty()) return;
  throw ApiError(415,
                 fmt::format("Content-Type: is \"{0}\", expected {1}; with curl, add "
                             "-H 'Content-Type: {1}'",
                             type, kJsonType),
                 {}, "unsupported_media_type");
}

}  // namespace pagoda::server
