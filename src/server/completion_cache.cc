// The members of a completion's reply that tell about the cache.
#include <algorithm>

#include "server/api/cache_explain.h"
#include "server/api/cached_ranges.h"
#include "server/api/kv_estimate.h"
#include "server/api/prompt_position.h"
#include "server/api/retain.h"
#include "server/completion.h"

namespace pagoda::server {

// The members of a reply that tell what happened in the cache.
Json Completion::cache_members() const {
  Json members = request_.cache.diagnosis;
  if (is_truncated() || policy_drops()) {
    members["truncated"] = true;  // as llama.cpp says it
  }
  if (is_truncated()) members["prompt_truncated"] = truncated();
  if (!request_.prompts.front().normalised.empty()) members["prompt_normalised"] = normalised();
  if (request_.retain) members["retain"] = retained();
  if (request_.cache.asks_to_keep()) members["cache_retention"] = breakpoints_kept();
  if (request_.engine.explain) members["cache_explain"] = explained();
  if (request_.engine.hands_over) {
    members["kv_transfer_params"] = transfer_params(handed_over(), model_.transfer, id_);
  }
  return members;
}

// The same question as whether cache_members() has any.
bool Completion::tells_of_cache() const {
  return is_truncated() || policy_drops() || !request_.cache.diagnosis.empty() ||
         !request_.prompts.front().normalised.empty() || request_.retain ||
         request_.cache.asks_to_keep() || request_.engine.explain || request_.engine.hands_over;
}

// Has a KV policy let go of tokens so far?
bool Completion::policy_drops() const {
  const kv::KvPolicy policy = engine::policy_of(request_.engine, model_.engine.limits());
  const std::size_t each = request_.choices_per_prompt();
  for (std::size_t i = 0; i < choices_.size() && !policy.is_full(); ++i) {
    const std::uint64_t prompt = request_.prompts[i / each].tokens.size();
    const kv::SequenceLengths lengths = {prompt, prompt + choices_[i].text.tokens()};
    if (policy.tokens_dropped(lengths, model_.engine.limits().block_tokens) > 0) return true;
  }
  return false;
}

bool Completion::is_truncated() const {
  return std::any_of(request_.prompts.begin(), request_.prompts.end(),
                     [](const Prompt& prompt) { return prompt.truncated.has_value(); });
}

// Returns one value for one prompt and an array for several.
Json Completion::truncated() const {
  Json all = Json::array();
  for (const Prompt& prompt : request_.prompts) {
    all.push_back(prompt.truncated ? truncation_json(*prompt.truncated) : Json(nullptr));
  }
  return all.size() == 1 ? all.front() : all;
}

// The lines as the model got them, and what that saved.
Json Completion::normalised() const {
  return {{"lines", normalised_lines_json(request_.prompts.front())},
          {"tokens_saved", usage().normalised_tokens()}};
}

// The option without which nothing is retained; empty: there is a budget.
std::string Completion::budget_option() const {
  const bool has_budget = model_.engine.retain_blocks_max() > 0;
  return has_budget ? "" : option_name_("retain_budget", {});
}

// Returns one value for one prompt and an array for several.
Json Completion::retained() const {
  Json all = Json::array();
  for (const Submitted& submitted : submitted_) {
    all.push_back(retain_json(*request_.retain, submitted.retain, budget_option()));
  }
  return all.size() == 1 ? all.front() : all;
}

// Several prompts are told together.
engine::HandoverOutcome Completion::handed_over() const {
  engine::HandoverOutcome all;
  for (const Submitted& submitted : submitted_) {
    if (!submitted.handover) continue;
    all.tokens += submitted.handover->tokens;
    if (all.missing.empty()) all.missing = submitted.handover->missing;
  }
  return all;
}

std::optional<TransferOutcome> Completion::transfer_outcome() const {
  if (!finished_ || error_) return std::nullopt;
  if (request_.engine.hands_over) return outcome_of(handed_over());
  if (request_.transfer.is_refused) return TransferOutcome::kRefused;
  if (!request_.transfer.takes_over) return std::nullopt;
  std::uint64_t found = 0;
  std::uint64_t whole = 0;
  const std::uint64_t block_tokens = model_.engine.limits().block_tokens;
  for (std::size_t i = 0; i < submitted_.size(); ++i) {
    const std::uint64_t tokens = request_.prompts[i].tokens.size();
    // Pages also come while the prompt is computed from its front.
    found += std::max(submitted_[i].cached_tokens, submitted_[i].load.tokens_loaded());
    whole += (tokens - 1) / block_tokens * block_tokens;
  }
  return outcome_of(request_.transfer, found, whole);
}

Json Completion::breakpoints_kept() const {
  Json all = Json::array();
  for (std::size_t i = 0; i < submitted_.size(); ++i) {
    all.push_back(cache_retention_json(request_.cache, request_.prompts[i].tokens.size(),
                                       submitted_[i].breakpoints, budget_option()));
  }
  return all.size() == 1 ? all.front() : all;
}

Json Completion::explained() const {
  const bool is_salted = !request_.engine.cache_salt.empty();
  const ExplainTerms terms = {.now_ns = model_.engine.now_ns(),
                              .salted_beside_tiers = is_salted && !model_.tiers.empty(),
                              .option_name = option_name_,
                              .policy = engine::policy_of(request_.engine, model_.engine.limits()),
                              .block_tokens = model_.engine.limits().block_tokens,
                              .form = model_.form ? &model_.form->found.form : nullptr};
  Json all = Json::array();
  for (std::size_t i = 0; i < submitted_.size(); ++i) {
    const std::optional<kv::Explanation>& why = submitted_[i].explanation;
    Json told =
        why ? explain_json(*why, request_.prompts[i], model_.tokenizer, terms) : Json(nullptr);
    if (why && request_.output.estimate) {
      told = estimate_json(submitted_[i].estimate.value(), *why, std::move(told), model_);
    } else if (why && !request_.engine.explain_only) {
      Json ranges = cached_ranges_json(why->prompt_tokens, submitted_[i].cached_tokens,
                                       submitted_[i].load, model_.tiers);
      told["matched_by_tier"] = matched_by_tier_json(ranges, why->stops_at());  // loaded before it
      told["cached_ranges"] = std::move(ranges);
    }
    all.push_back(std::move(told));
  }
  return all.size() == 1 ? all.front() : all;
}

// Replies how much of the prompt is in memory after a prefetch or demotion, and what was moved.
HttpReply Completion::cache_action() const {
  const Submitted& submitted = submitted_.front();
  Json reply = {{"prompt_tokens", request_.prompts.front().tokens.size()},
                {"cached_tokens", submitted.cached_tokens}};
  if (request_.engine.action == engine::CacheAction::kDemote) {
    reply["blocks_demoted"] = submitted.blocks_demoted;
    return json_reply(reply);
  }
  reply["loaded_tokens_by_tier"] = loaded_by_tier_json(submitted.load, model_.tiers);
  return json_reply(reply);
}

}  // namespace pagoda::server
