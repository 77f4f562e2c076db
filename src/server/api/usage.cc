#include "server/api/usage.h"

namespace pagoda::server {

void Usage::add_prompt(const Prompt& prompt, std::uint64_t cached) {
  prompt_tokens_ += prompt.tokens.size();
  cached_tokens_ += cached;
  for (std::size_t i = 0; i < prompt.sources.size(); ++i) {
    Share& share = by_source_[static_cast<std::size_t>(prompt.sources[i])];
    ++share.tokens;
    if (i < cached) ++share.cached;
  }
}

Json Usage::to_json() const {
  Json by_source = Json::object();
  for (std::size_t i = 0; i < by_source_.size(); ++i) {
    by_source[std::string(text::source_name(static_cast<text::Source>(i)))] = {
        {"tokens", by_source_[i].tokens}, {"cached", by_source_[i].cached}};
  }
  return {{"prompt_tokens", prompt_tokens_},
          {"completion_tokens", completion_tokens_},
          {"total_tokens", prompt_tokens_ + completion_tokens_},
          {"prompt_tokens_details",
           {{"cached_tokens", cached_tokens_}, {"by_source", std::move(by_source)}}}};
}

}  // namespace pagoda::server
