// Which tokens end a generation. Files name few of them by key, so the rest go by their text.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "gguf/metadata.h"
#include "text/vocabulary.h"

namespace pagoda::text {

// Ascending ids. Those known by their text but not marked as control tokens become such, with a
// warning: their text must not be shown, nor be typed by a user. Those named by a key keep their
// type: a base model may well end on a newline.
Result<std::vector<TokenId>> find_end_tokens(const gguf::Metadata& metadata,
                                             Vocabulary& vocabulary);

}  // namespace pagoda::text
