// Makes the fingerprint of a chat (request_fingerprints.h).
#pragma once

#include <cstdint>

#include "server/fields.h"
#include "server/request_fingerprints.h"
#include "text/chat_template.h"
#include "text/prompt_tokens.h"

namespace pagoda::server {

// Hashes what the body says about the answer's form; 0 where it asks for plain text.
std::uint64_t hash_format(const Fields& body);

// `format` is hash_format() of the body.
RequestFingerprint fingerprint_of(const text::Conversation& conversation,
                                  const text::PromptTokens& tokens, std::uint64_t format);

}  // namespace pagoda::server
