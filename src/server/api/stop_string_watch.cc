#include "server/api/stop_string_watch.h"

#include "server/api/choice_text.h"

namespace pagoda::server {

StopStringWatch::StopStringWatch(const text::Tokenizer& tokenizer, const CompletionRequest& request,
                                 bool continues)
    : tokens_min_(request.engine.end.min_tokens) {
  const text::DetokenizerOptions options = detokenizer_options(request, continues);
  choices_.reserve(request.choices_per_prompt());
  for (std::uint32_t i = 0; i < request.choices_per_prompt(); ++i) {
    choices_.push_back({text::Detokenizer(tokenizer, options), request.output.stops});
  }
  text_.reserve(tokenizer.token_bytes_max() + text::Detokenizer::kHeldBytesMax);
}

bool StopStringWatch::ends_with(std::uint32_t sequence, TokenId token) {
  Choice& choice = choices_[sequence];
  text_.clear();
  choice.detokenizer.push(token, text_);
  return ++choice.tokens > tokens_min_ && choice.stops.search(text_);
}

}  // namespace pagoda::server
