#include "server/api/usage.h"

#include <algorithm>

#include "server/api/kv_policy_fields.h"
#include "server/api/speculation_fields.h"

namespace pagoda::server {

void Usage::add_prompt(const Prompt& prompt, std::uint64_t cached) {
  prompt_tokens_ += prompt.tokens.size();
  if (prompt.truncated) dropped_tokens_ += prompt.truncated->dropped_tokens.value_or(0);
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

void Usage::add_bounded(const kv::KvPolicy& policy, kv::SequenceLengths lengths,
                        std::uint32_t block_tokens, std::string_view quality) {
  policy_ = policy;
  policy_quality_ = quality;
  const std::uint64_t dropped = policy.tokens_dropped(lengths, block_tokens);
  policy_dropped_tokens_ += dropped;
  policy_kept_tokens_ += lengths.tokens - dropped;
}

void Usage::add_drafts(const engine::DraftCounts& drafts) { drafts_.add(drafts); }

std::uint64_t Usage::kept_tokens(double above, double upto) const {
  std::uint64_t tokens = 0;
  for (const WrittenShare& share : kept_) {
    if (share.seconds > above && share.seconds <= upto) tokens += share.tokens;
  }
  return tokens;
}

Json Usage::own_members() const {
  Json members = Json::object();
  if (drafts_.drafts > 0) members["speculation"] = speculation_json(drafts_);
  if (!policy_.is_full()) {
    Json& told = members["kv_policy"];
    told = kv_policy_json(policy_, policy_kept_tokens_, policy_dropped_tokens_);
    if (!policy_quality_.empty()) told["quality"] = policy_quality_;
  }
  return members;
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
  if (dropped_tokens_ > 0) details["dropped_tokens"] = dropped_tokens_;
  if (!tiers.empty()) {
    // A block that was loaded and not used in the end is no cached token.
    const std::uint64_t loaded = std::min(loaded_.tokens_loaded(), cached_tokens_);
    Json by_tier = {{"memory", cached_tokens_ - loaded}};
    for (std::size_t i = 0; i < tiers.size(); ++i) by_tier[tiers[i]] = loaded_.tokens[i];
    details["cached_tokens_by_tier"] = std::move(by_tier);
    details["load_seconds"] = {{"waited", loaded_.waited_s}, {"saved", loaded_.saved_s}};
  }
  Json usage = {{"prompt_tokens", prompt_tokens_},
                {"completion_tokens", completion_tokens_},
                {"total_tokens", prompt_tokens_ + completion_tokens_},
                {"prompt_tokens_details", std::move(details)}};
  const std::uint64_t accepted = drafts_.prediction_accepted;
  usage["completion_tokens_details"] = {
      {"reasoning_tokens", reasoning_tokens_},
      {"accepted_prediction_tokens", accepted},
      {"rejected_prediction_tokens", drafts_.prediction_tokens - accepted}};
  usage.update(own_members());
  return usage;
}

}  // namespace pagoda::server
