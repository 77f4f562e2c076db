#include "text/detokenizer.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace pagoda::text {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, DetokenizerOptions options)
    : tokenizer_(&tokenizer), options_(options), at_start_(!options.continues) {
  pending_.reserve(tokenizer.token_bytes_max() + kHeldBytesMax);
}

std::string Detokenizer::push(TokenId id) {
  std::string text;
  push(id, text);
  return text;
}

void Detokenizer::push(TokenId id, std::string& text) {
  const bool shown = std::binary_search(options_.shown.begin(), options_.shown.end(), id);
  pending_ += tokenizer_->visible_bytes(id, options_.special || shown, at_start_);
  const std::size_t complete = pending_.size() - utf8_incomplete_tail(pending_);
  text.append(pending_, 0, complete);
  pending_.erase(0, complete);
}

std::string Detokenizer::finish() {
  at_start_ = !options_.continues;
  return std::exchange(pending_, {});
}

}  // namespace pagoda::text
