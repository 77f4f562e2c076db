// Calls in the history of models whose template does not show them: the call becomes text of its
// message, as the model wrote it, so that the model sees what it asked and the cache finds it.
#pragma once

#include "base/result.h"
#include "chat/answer_form.h"
#include "text/chat_template.h"

namespace pagoda::chat {

// Moves the calls of every message of `messages` (an array of objects) to the end of its content.
// Arguments that came as text stay as they are where the form writes JSON. An error names the place
// of arguments that are too long.
Status write_history_calls(const ToolCallForm& form, text::ChatJson& messages);

}  // namespace pagoda::chat
