// A form in words, for `pagoda template check` and logs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "chat/derive.h"

namespace pagoda::chat {

// {"tool_calls": {"from", "form", "syntax", …}, "reasoning": {"from", "begin", "end"}, …}; members
// that are empty are left out.
nlohmann::ordered_json describe_form(const FoundForm& found);

}  // namespace pagoda::chat
