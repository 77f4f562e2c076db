// Tokens to text as they come, never half a character.
//
// What push() and finish() return, one after another, is what Tokenizer::decode() gives for all
// the tokens at once. One thread.
#pragma once

#include <string>

#include "base/token_id.h"
#include "text/tokenizer.h"

namespace pagoda::text {

struct DetokenizerOptions {
  bool special = false;  // show control tokens as their text
  // The tokens go on from text shown before, whose end their leading space belongs to.
  bool continues = false;
};

class Detokenizer {
 public:
  // `tokenizer` must outlive it.
  explicit Detokenizer(const Tokenizer& tokenizer, DetokenizerOptions options = {});

  // The text that is complete now. Ids outside the vocabulary stand for nothing: a model may have
  // more logits than its file has tokens.
  std::string push(TokenId id);
  // What is left, a cut-off character included. The next push starts a new text.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  DetokenizerOptions options_;
  bool at_start_;
  std::string pending_;
};

}  // namespace pagoda::text
