#include "server/page/page.h"

#include <array>

#include "base/assert.h"
#include "server/page_files.h"

namespace pagoda::server {
namespace {

struct PageFile {
  std::string_view path;
  std::string_view content_type;
  std::string_view body;
};

const std::array<PageFile, 3> kFiles = {{
    {"/", "text/html; charset=utf-8", kPageHtml},
    {"/page.css", "text/css; charset=utf-8", kPageCss},
    {"/page.js", "text/javascript; charset=utf-8", kPageJs},
}};

constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace

HttpReply page_reply(std::string_view path) {
  for (const PageFile& file : kFiles) {
    if (file.path != path) continue;
    return {.content_type = std::string(file.content_type),
            .body = std::string(file.body),
            .headers = {{"Content-Security-Policy", kContentPolicy},
                        {"X-Content-Type-Options", "nosniff"},
                        {"Referrer-Policy", "no-referrer"},
                        {"Cache-Control", "no-cache"}}};
  }
  ASSERT(false, "the router knows the page's files");
  return {};
}

}  // namespace pagoda::server
