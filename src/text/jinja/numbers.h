// Parses numbers as Python's int() and float() do.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pagoda::text::jinja {

// Allows white space around it, a sign, underscores between digits and digits of any script.
// Returns nothing when `text` is no integer; throws when it is one beyond 64 bits.
std::optional<std::int64_t> parsed_integer(std::string_view text);
// Also accepts "inf", "infinity" and "nan" in any case.
std::optional<double> parsed_float(std::string_view text);
// Drops the fraction. Throws when the result is beyond 64 bits.
std::int64_t truncated(double number);

}  // namespace pagoda::text::jinja
