// The error of parsing and rendering: a Fault is thrown where the error is found, gets the position
// of the innermost template code around it (SourcePosition), and becomes an Error at this folder's
// edge (template.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace pagoda::text::jinja {

struct SourcePosition {
  std::uint32_t line = 1;
  std::uint32_t column = 1;  // counts characters
};

struct Fault {
  ErrorCode code;
  std::string message;
  std::optional<SourcePosition> place;
};

[[noreturn]] inline void fail(std::string message,
                              std::optional<SourcePosition> place = std::nullopt) {
  throw Fault{ErrorCode::kInvalidArgument, std::move(message), place};
}

[[noreturn]] inline void fail_limit(std::string message,
                                    std::optional<SourcePosition> place = std::nullopt) {
  throw Fault{ErrorCode::kOutOfRange, std::move(message), place};
}

[[noreturn]] inline void fail_exhausted(std::string message) {
  throw Fault{ErrorCode::kExhausted, std::move(message), std::nullopt};
}

}  // namespace pagoda::text::jinja
