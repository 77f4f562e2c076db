#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "engine/logit_order.h"
#include "engine/top_p_sampler.h"

namespace pagoda::engine {
namespace {

// A forbidden token keeps the lowest logit there is: rows stay finite.
constexpr float kForbidden = std::numeric_limits<float>::lowest();

// Outputs longer than this are rare, and distinct tokens in them rarer.
constexpr std::size_t kSeenReserveMax = 8192;

float finite(float logit) {
  return std::clamp(logit, kForbidden, std::numeric_limits<float>::max());
}

float penalised(float logit, const SeenTokens::Entry& seen, const SamplingParams& options) {
  const float penalty = options.repetition_penalty;
  if (penalty != 1.0f) logit = logit > 0.0f ? logit / penalty : logit * penalty;
  if (seen.output_count == 0) return logit;
  logit -= options.frequency_penalty * static_cast<float>(seen.output_count);
  return logit - options.presence_penalty;
}

bool adjusts_logits(const SamplingState& state) {
  return !state.options().logit_bias.empty() || !state.seen().entries().empty() ||
         !state.stop_criteria().forbidden_after(state.generated()).empty() ||
         state.constraint().has_value();
}

// Applies steps 1 to 3, into the scratch.
std::span<const float> adjusted(std::span<const float> logits, const SamplingState& state,
                                SamplerScratch& scratch) {
  const std::span<float> row(scratch.logits.data(), logits.size());
  std::copy(logits.begin(), logits.end(), row.begin());
  for (const auto& [token, bias] : state.options().logit_bias) {
    row[token.value()] = finite(row[token.value()] + bias);
  }
  for (const SeenTokens::Entry& entry : state.seen().entries()) {
    float& logit = row[entry.token.value()];
    logit = finite(penalised(logit, entry, state.options()));
  }
  const std::optional<TokenConstraint>& constraint = state.constraint();
  if (constraint) constraint->drop_others(row, kForbidden);
  // Where the grammar leaves nothing but the end, min_tokens gives way.
  if (constraint && constraint->must_end()) return row;
  for (const TokenId token : state.stop_criteria().forbidden_after(state.generated())) {
    row[token.value()] = kForbidden;
  }
  return row;
}

// Applies steps 4 to 8 above temperature 0.
std::uint32_t draw(std::span<const float> logits, float best, const SamplingState& state,
                   SamplerScratch& scratch, std::uint64_t position) {
  const SamplingParams& options = state.options();
  const TopPParams shape = {.best = best,
                            .inverse_temperature = 1.0f / options.temperature,
                            .min_p = options.min_p,
                            .top_p = options.top_p};
  const RandomKey key = {options.seed, position};
  if (options.top_k == 0 || options.top_k >= logits.size()) {
    return sample_top_p(logits, shape, key, scratch);
  }
  // Gathers a row of the first k tokens alone, by ascending id: no write overtakes a read when
  // `logits` is the scratch's own row.
  find_top_k(scratch.kernels, logits, options.top_k, scratch.first);
  std::vector<std::uint32_t>& ids = scratch.first.ids;
  std::sort(ids.begin(), ids.end());
  for (std::size_t i = 0; i < ids.size(); ++i) scratch.logits[i] = logits[ids[i]];
  return ids[sample_top_p(std::span(scratch.logits).first(ids.size()), shape, key, scratch)];
}

}  // namespace

SamplingState::SamplingState(SamplingParams options, std::span<const TokenId> prompt,
                             StopCriteria end)
    : options_(std::move(options)), end_(std::move(end)) {
  if (!has_penalties(options_)) return;
  const std::size_t room = std::min<std::size_t>(end_.max_tokens().value_or(0), kSeenReserveMax);
  if (options_.repetition_penalty == 1.0f) prompt = {};
  seen_ = SeenTokens(prompt, room);
}

SamplingState SamplingState::fork(std::uint32_t sequence) const {
  SamplingState other = *this;
  other.options_.seed = seed_of_sequence(options_.seed, sequence);
  return other;
}

SamplingState SamplingState::for_drafts(bool draws, bool has_same_ids) const {
  SamplingParams options = options_;
  options.logprobs.reset();
  options.prompt_logprobs.reset();
  if (!draws) options.temperature = 0;
  if (!has_same_ids) {
    options.logit_bias = {};
    options.repetition_penalty = 1;
    options.presence_penalty = options.frequency_penalty = 0;
  }
  if (!has_same_ids) return SamplingState(std::move(options), {});
  SamplingState other = *this;
  other.options_ = std::move(options);
  return other;
}

void SamplingState::accept(TokenId token) {
  ++generated_;
  if (has_penalties(options_)) seen_.add_output_token(token);
  if (constraint_) constraint_->accept(token);
}

Result<Sampled> sample(std::span<const float> logits, const SamplingState& state,
                       SamplerScratch& scratch, std::uint64_t position) {
  ASSERT(logits.size() <= scratch.logits.size(), "the scratch has room for the vocabulary");
  ASSIGN_OR_RETURN(BestLogit best, find_argmax(scratch.kernels, logits, position));
  std::span<const float> row = logits;
  if (adjusts_logits(state)) {
    row = adjusted(logits, state, scratch);
    ASSIGN_OR_RETURN(best, find_argmax(scratch.kernels, row, position));
    if (best.logit == kForbidden) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} forbid every token at position {}",
                               state.constraint() ? "logit_bias, min_tokens and the grammar"
                                                  : "logit_bias and min_tokens",
                               position)};
    }
  }
  const std::uint32_t id =
      is_greedy(state.options()) ? best.id : draw(row, best.logit, state, scratch, position);
  Sampled sampled = {TokenId(id), std::nullopt};
  if (const auto top_count = state.options().logprobs) {
    ASSIGN_OR_RETURN(sampled.logprobs,
                     find_logprobs(logits, sampled.token, *top_count, scratch, position));
  }
  return sampled;
}

}  // namespace pagoda::engine
