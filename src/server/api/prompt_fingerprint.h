// Makes the fingerprint of a chat (request_fingerprints.h).
#pragma once

#include "server/json.h"
#include "server/request_fingerprints.h"
#include "text/chat_template.h"
#include "text/prompt_tokens.h"

namespace pagoda::server {

// `format` is what the body says about the answer's form; may be nullptr.
RequestFingerprint fingerprint_of(const text::Conversation& conversation,
                                  const text::PromptTokens& tokens, const Json* format);

}  // namespace pagoda::server
