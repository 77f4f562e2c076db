// A model's form of answers together with the tokens of its vocabulary that are markers.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "chat/derive.h"
#include "text/tokenizer.h"

namespace pagoda::chat {

struct ServedForm {
  FoundForm found;
  // Control tokens whose text is part of a marker, ascending. Detokenisation hides control tokens,
  // and these must be seen by whoever reads the answer.
  std::vector<TokenId> text_tokens;  // of reasoning and content
  std::vector<TokenId> call_tokens;  // the same, and those of calls
};

Result<ServedForm> find_served_form(const text::ChatTemplate& chat,
                                    const text::Tokenizer& tokenizer,
                                    const FormOverrides& overrides = {});

}  // namespace pagoda::chat
