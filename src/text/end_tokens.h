// Finds the tokens that end a generation (EOG). Files name few of them by key; the others are
// recognised by their text.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "gguf/metadata.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// Returns ascending ids. A token that is known by its text but not marked as a control token
// becomes one, with a warning, because its text must neither be shown nor be typed by a user. A
// token named by a key keeps its type: a base model may well end on a newline.
Result<std::vector<TokenId>> find_end_tokens(const gguf::Metadata& metadata,
                                             Vocabulary& vocabulary);

}  // namespace pagoda::text
