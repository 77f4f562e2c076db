// Turns tokens into text incrementally, never half a character.
//
// The results of push() and finish(), one after another, equal Tokenizer::decode() of all the
// tokens at once. One thread may use a detokenizer at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/token_id.h"
#include "text/tokenizer.h"

namespace pagoda::text {

struct DetokenizerOptions {
  bool special = false;  // control tokens appear as their text
  // The tokens continue a text shown before, so that their leading space is kept.
  bool continues = false;
  // Control tokens that appear as their text nevertheless, ascending. They must outlive the
  // detokenizer.
  std::span<const TokenId> shown = {};
};

class Detokenizer {
 public:
  static constexpr std::size_t kHeldBytesMax = 3;  // of a character that is not complete

  // `tokenizer` must outlive the detokenizer.
  explicit Detokenizer(const Tokenizer& tokenizer, DetokenizerOptions options = {});

  // Returns the text that is complete now. Ids outside the vocabulary add nothing: a model may have
  // more logits than its file has tokens.
  std::string push(TokenId id);
  // Appends that text to `text`, and allocates nothing where that has room for it.
  void push(TokenId id, std::string& text);
  // Returns the rest, including an incomplete character. The next push starts a new text.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  DetokenizerOptions options_;
  bool at_start_;
  std::string pending_;
};

}  // namespace pagoda::text
