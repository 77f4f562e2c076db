// JSON as text for people and programs. The JSON library's writer is compiled here alone.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace pagoda::terminal {

// `indent`: of each level, in blanks; below 0: all in one line. Bytes that are no UTF-8 become
// U+FFFD.
std::string json_text(const nlohmann::ordered_json& json, int indent = 2);

}  // namespace pagoda::terminal
