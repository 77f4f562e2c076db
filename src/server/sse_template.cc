#include "server/sse_template.h"

#include "server/json_string.h"

namespace pagoda::server {

std::optional<SseTemplate> SseTemplate::from_event(const std::string& event) {
  std::string mark;
  append_json_string(kPlaceholder, mark);
  const std::size_t at = event.find(mark);
  if (at == std::string::npos || event.find(mark, at + 1) != std::string::npos) return std::nullopt;
  return SseTemplate(event.substr(0, at), event.substr(at + mark.size()));
}

void SseTemplate::render(std::string_view text, std::string& out) const {
  out += head_;
  append_json_string(text, out);
  out += tail_;
}

}  // namespace pagoda::server
