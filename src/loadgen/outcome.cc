#include "loadgen/outcome.h"

#include <array>

namespace pagoda::loadgen {

std::string_view outcome_name(OutcomeKind kind) {
  static constexpr std::array<std::string_view, kOutcomeKinds> kNames = {
      "answered",  "connection", "http status", "error in the stream",
      "malformed", "short",      "timed out",   "unfinished"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace pagoda::loadgen
