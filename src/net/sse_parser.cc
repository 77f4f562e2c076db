#include "net/sse_parser.h"

namespace pagoda::net {

std::vector<std::string> SseParser::push(std::string_view bytes) {
  std::vector<std::string> events;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    end_line(events);
  }
  return events;
}

void SseParser::end_line(std::vector<std::string>& events) {
  constexpr std::string_view kData = "data:";
  if (line_.ends_with('\r')) line_.pop_back();
  if (line_.empty()) {
    if (has_data_) events.push_back(std::move(data_));
    data_.clear();
    has_data_ = false;
  } else if (line_.starts_with(kData)) {
    const std::size_t begin = line_.size() > kData.size() && line_[kData.size()] == ' ' ? 1 : 0;
    if (has_data_) data_ += '\n';
    data_ += line_.substr(kData.size() + begin);
    has_data_ = true;
  }
  line_.clear();
}

}  // namespace pagoda::net
