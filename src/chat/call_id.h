// Ids of tool calls: those that models write, and others where they write none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chat/answer_form.h"
#include "text/chat_template.h"

namespace pagoda::chat {

// The id of call number `call` of an answer, in the style that the model's template accepts; a
// function of its arguments.
std::string make_call_id(CallIdStyle style, std::uint64_t seed, std::uint32_t call,
                         std::string_view name);

// Returns whether an id that the model wrote can be the call's: the template accepts it in the
// history, and it is long enough that another answer hardly has the same.
bool is_call_id(CallIdStyle style, std::string_view id);

// Gives calls and results of a history whose ids the template refuses others in their place, which
// depend on the old ones alone. `messages` is an array of objects.
void fit_call_ids(CallIdStyle style, text::ChatJson& messages);

}  // namespace pagoda::chat
