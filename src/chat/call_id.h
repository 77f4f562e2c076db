// Ids of tool calls where the model writes none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chat/answer_form.h"

namespace pagoda::chat {

// The id of call number `call` of an answer, in the style that the model's template accepts; a
// function of its arguments.
std::string make_call_id(CallIdStyle style, std::uint64_t seed, std::uint32_t call,
                         std::string_view name);

}  // namespace pagoda::chat
