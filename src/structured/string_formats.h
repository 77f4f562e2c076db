// The values of JSON Schema's `format` that are enforced, as patterns (pattern_reader.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pagoda::structured {

// Returns the pattern that the whole string matches; nothing for a format that is not known.
std::optional<std::string> format_pattern(std::string_view format);

// All known formats, for errors: "date, date-time, …".
std::string known_formats();

}  // namespace pagoda::structured
