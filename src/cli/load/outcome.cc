#include "cli/load/outcome.h"

#include <array>

namespace pagoda::load {

std::string_view ending_name(Ending ending) {
  static constexpr std::array<std::string_view, kEndings> kNames = {
      "answered",  "connection", "http status", "error in the stream",
      "malformed", "short",      "timed out",   "unfinished"};
  return kNames[static_cast<std::size_t>(ending)];
}

}  // namespace pagoda::load
