// Server-sent events out of bytes as they come: each blank line ends one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pagoda::net {

class SseParser {
 public:
  // The data of the events that are complete now. Comments and other fields are passed over.
  std::vector<std::string> push(std::string_view bytes);

 private:
  void end_line(std::vector<std::string>& events);

  std::string line_;
  std::string data_;
  bool has_data_ = false;
};

}  // namespace pagoda::net
