#include "server/api/usage.h"

#include <algorithm>

namespace pagoda::server {

void Usage::add_prompt(const Prompt& prompt, std::uint64_t cached) {
  prompt_tokens_ += prompt.tokens.size();
  cached_tokens_ += cached;
  if (!prompt.normalised.empty() && cached > prompt.normalised_upto) {
    normalised_tokens_ += cached - prompt.normalised_upto;
  }
  for (std::size_t i = 0; i < prompt.sources.size(); ++i) {
    Share& share = by_source_[static_cast<std::size_t>(prompt.sources[i])];
    ++share.tokens;
    if (i < cached) ++share.cached;
  }
}

void Usage::add_loaded(const engine::LoadRecord& load) {
  for (std::size_t i = 0; i < load.tokens.size(); ++i) loaded_.tokens[i] += load.tokens[i];
  loaded_.waited_s += load.waited_s;
  loaded_.saved_s += load.saved_s;
}

void Usage::add_written(std::uint64_t tokens, std::span<const WrittenShare> kept) {
  written_tokens_ += tokens;
  kept_.insert(kept_.end(), kept.begin(), kept.end());
}

std::uint64_t Usage::kept_tokens(double above, double upto) const {
  std::uint64_t tokens = 0;
  for (const WrittenShare& share : kept_) {
    if (share.seconds > above && share.seconds <= upto) tokens += share.tokens;
  }
  return tokens;
}

Json Usage::to_json(std::span<const std::string> tiers) const {
  Json by_source = Json::object();
  for (std::size_t i = 0; i < by_source_.size(); ++i) {
    by_source[std::string(text::source_name(static_cast<text::Source>(i)))] = {
        {"tokens", by_source_[i].tokens}, {"cached", by_source_[i].cached}};
  }
  Json details = {{"cached_tokens", cached_tokens_},
                  {"cache_write_tokens", written_tokens_},
                  {"by_source", std::move(by_source)}};
  if (!tiers.empty()) {
    // A block that was loaded and not used in the end is no cached token.
    const std::uint64_t loaded = std::min(loaded_.tokens_loaded(), cached_tokens_);
    Json by_tier = {{"memory", cached_tokens_ - loaded}};
    for (std::size_t i = 0; i < tiers.size(); ++i) by_tier[tiers[i]] = loaded_.tokens[i];
    details["cached_tokens_by_tier"] = std::move(by_tier);
    details["load_seconds"] = {{"waited", loaded_.waited_s}, {"saved", loaded_.saved_s}};
  }
  return {{"prompt_tokens", prompt_tokens_},
          {"completion_tokens", completion_tokens_},
          {"total_tokens", prompt_tokens_ + completion_tokens_},
          {"prompt_tokens_details", std::move(details)}};
}

}  // namespace pagoda::server
