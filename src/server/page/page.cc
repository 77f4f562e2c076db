#include "server/page/page.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "server/api_error.h"
#include "server/page_files.h"

namespace pagoda::server {
namespace {

constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr std::string_view kFirstFile = "page.html";

std::string path_of(std::string_view file) {
  return file == kFirstFile ? "/" : std::string(kPageFolder) + std::string(file);
}

std::string_view content_type_of(std::string_view file) {
  if (file.ends_with(".html")) return "text/html; charset=utf-8";
  if (file.ends_with(".css")) return "text/css; charset=utf-8";
  ASSERT(file.ends_with(".js"), "the page has files of three kinds");
  return "text/javascript; charset=utf-8";
}

}  // namespace

std::vector<std::string> page_paths() {
  std::vector<std::string> paths;
  for (const auto& [file, body] : kPageFiles) paths.push_back(path_of(file));
  return paths;
}

HttpReply page_reply(std::string_view path) {
  for (const auto& [file, body] : kPageFiles) {
    if (path_of(file) != path) continue;
    return {.content_type = std::string(content_type_of(file)),
            .body = std::string(body),
            .headers = {{"Content-Security-Policy", kContentPolicy},
                        {"X-Content-Type-Options", "nosniff"},
                        {"Referrer-Policy", "no-referrer"},
                        {"Cache-Control", "no-cache"}}};
  }
  throw ApiError(404, fmt::format("{}: there is no such path", path), {}, "not_found");
}

}  // namespace pagoda::server
