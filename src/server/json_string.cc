#include "server/json_string.h"

#include <algorithm>

#include "server/json.h"

namespace pagoda::server {

void append_json_string(std::string_view text, std::string& out) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c < '\x7f' && c != '"' && c != '\\';
  });
  if (!plain) {
    out += dump_json(text);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

}  // namespace pagoda::server
