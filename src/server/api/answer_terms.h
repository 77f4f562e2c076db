// How the answer to a chat is read: by the form of its model, with the tools of its request.
#pragma once

#include "chat/answer_parser.h"
#include "chat/served_form.h"
#include "chat/tool_schemas.h"

namespace pagoda::server {

// Shared by all choices of a request; the form is the model's and outlives them.
struct AnswerTerms {
  const chat::ServedForm* form = nullptr;
  chat::ToolSchemas schemas = {};
  chat::AnswerOptions options = {};  // without the seed of ids
  bool may_reason = false;           // the answer may open reasoning itself
};

}  // namespace pagoda::server
