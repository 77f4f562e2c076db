// Resolves the escapes of string literals: \n, \', \x41, \u2581, … as in Python.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/fault.h"

namespace pagoda::text::jinja {

// `body` is the text between the quotes; `place` is the position where the literal begins. Unknown
// escapes keep their backslash.
std::string resolve_escapes(std::string_view body, SourcePosition place);

}  // namespace pagoda::text::jinja
