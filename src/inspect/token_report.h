// Text to token ids and back, as `pagoda tokenize` shows them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/metadata.h"
#include "text/tokenizer.h"

namespace pagoda::inspect {

struct TokenReportOptions {
  bool special = false;       // the text of control tokens is read as those tokens, and shown
  bool bos = false;           // adds BOS and EOS where the model's file asks for them
  bool pieces = false;        // one token a line: id and piece
  bool detokenize = false;    // the input is ids
  bool chat = false;          // the input is a conversation as JSON
  std::string chat_template;  // a file; empty: the model's own
  bool json = false;          // one JSON value on a line
};

// Returns the tokens of the input, or with `detokenize` its text. `metadata` is that of the model
// whose tokenizer this is.
Result<std::string> token_report(const text::Tokenizer& tokenizer, const gguf::Metadata& metadata,
                                 std::string_view input, const TokenReportOptions& options);

}  // namespace pagoda::inspect
