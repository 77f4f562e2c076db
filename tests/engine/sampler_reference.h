// The reference is the sampler as plain as possible: every token in a list, sorted; sums by loops
// over the whole list. It has no kernel set, no blocks, no shortcuts.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/random.h"
#include "engine/sampler.h"
#include "kernels/exp.h"

namespace pagoda::engine {

struct ReferenceRequest {
  SamplingParams options;
  StopParams end;
  std::vector<TokenId> end_tokens;
  std::vector<TokenId> prompt;
  std::vector<TokenId> answer;
  std::uint32_t sample = 0;
};

struct ReferenceToken {
  float logit;
  std::uint32_t id;
  std::uint64_t weight = 0;
};

inline std::vector<ReferenceToken> reference_adjusted(std::span<const float> logits,
                                                      const ReferenceRequest& request) {
  const SamplingParams& options = request.options;
  std::vector<ReferenceToken> tokens;
  for (std::uint32_t id = 0; id < logits.size(); ++id) tokens.push_back({logits[id], id});
  for (const LogitBias& entry : options.logit_bias) {
    tokens[entry.token.value()].logit += entry.bias;
  }
  std::map<std::uint32_t, std::uint32_t> counts;
  for (const TokenId id : request.answer) ++counts[id.value()];
  std::set<std::uint32_t> seen;
  for (const TokenId id : request.prompt) seen.insert(id.value());
  for (const TokenId id : request.answer) seen.insert(id.value());
  for (ReferenceToken& token : tokens) {
    if (seen.contains(token.id) && options.repetition_penalty != 1) {
      token.logit = token.logit > 0 ? token.logit / options.repetition_penalty
                                    : token.logit * options.repetition_penalty;
    }
    if (counts.contains(token.id)) {
      token.logit -= options.frequency_penalty * static_cast<float>(counts[token.id]);
      token.logit -= options.presence_penalty;
    }
  }
  if (request.answer.size() < request.end.min_tokens) {
    for (const TokenId id : request.end_tokens) tokens[id.value()].logit = -INFINITY;
    for (const TokenId id : request.end.stop_token_ids) tokens[id.value()].logit = -INFINITY;
  }
  return tokens;
}

inline TokenId reference_sample(std::span<const float> logits, const ReferenceRequest& request,
                                std::uint64_t position) {
  const SamplingParams& options = request.options;
  std::vector<ReferenceToken> tokens = reference_adjusted(logits, request);
  std::sort(tokens.begin(), tokens.end(), [](const ReferenceToken& a, const ReferenceToken& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  });
  if (options.temperature < 1e-5f) return TokenId(tokens.front().id);

  const float best = tokens.front().logit;
  for (ReferenceToken& token : tokens) {
    const float share = kernels::exp_fixed((token.logit - best) * (1.0f / options.temperature));
    token.weight = share < options.min_p ? 0 : std::llrint(double{share} * 0x1p30);
  }
  if (options.top_k != 0 && options.top_k < tokens.size()) tokens.resize(options.top_k);
  std::uint64_t total = 0;
  for (const ReferenceToken& token : tokens) total += token.weight;

  std::uint64_t before = 0;
  std::size_t head = 0;
  while (head < tokens.size() &&
         static_cast<double>(before) < double{options.top_p} * static_cast<double>(total)) {
    before += tokens[head++].weight;
  }
  const std::uint64_t seed =
      request.sample == 0 ? options.seed : random_bits(options.seed, 1, request.sample) >> 11;
  std::size_t field = tokens.size();
  for (std::uint64_t round = 0;; ++round) {
    std::vector<ReferenceToken> by_id(tokens.begin(), tokens.begin() + static_cast<int>(field));
    std::sort(by_id.begin(), by_id.end(),
              [](const ReferenceToken& a, const ReferenceToken& b) { return a.id < b.id; });
    std::uint64_t mass = 0;
    for (const ReferenceToken& token : by_id) mass += token.weight;
    const double unit = random_unit(seed, round << 32, position);
    auto target = static_cast<std::int64_t>(unit * static_cast<double>(mass));
    std::size_t drawn = 0;
    while ((target -= static_cast<std::int64_t>(by_id[drawn].weight)) >= 0) ++drawn;
    const std::uint32_t id = by_id[drawn].id;
    std::size_t place = 0;
    while (tokens[place].id != id) ++place;
    if (place < head) return TokenId(id);
    field = place;
  }
}

}  // namespace pagoda::engine
