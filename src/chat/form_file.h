// Reads a file of src/chat/forms, which holds one form as JSON: of tool calls or of reasoning. Its
// keys are the fields of known_forms.h and answer_form.h by their names; a field whose key is left
// out keeps its default. "models" says in words who writes so, "names" has at least one name.
//
// Errors begin with the file's name and the path of the value. A key that no field has is an error.
#pragma once

#include <string_view>

#include "base/result.h"
#include "chat/known_forms.h"

namespace pagoda::chat {

Result<KnownToolForm> read_tool_form(std::string_view file, std::string_view text);
Result<KnownReasoningForm> read_reasoning_form(std::string_view file, std::string_view text);

}  // namespace pagoda::chat
