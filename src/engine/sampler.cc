#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace pagoda::engine {
namespace {

Error bad_option(std::string_view name, double value, std::string_view range) {
  return {ErrorCode::kInvalidArgument, fmt::format("{} is {}, expected {}", name, value, range)};
}

}  // namespace

Status check_sampling(const SamplingOptions& options) {
  if (!(options.temperature >= 0.0f && options.temperature <= 100.0f)) {
    return bad_option("temperature", options.temperature, "0 to 100");
  }
  if (!(options.top_p > 0.0f && options.top_p <= 1.0f)) {
    return bad_option("top_p", options.top_p, "above 0, at most 1");
  }
  if (!(options.min_p >= 0.0f && options.min_p <= 1.0f)) {
    return bad_option("min_p", options.min_p, "0 to 1");
  }
  return ok_status();
}

Result<TokenId> Sampler::sample(std::span<const float> logits, std::uint64_t position) {
  std::uint32_t best = 0;
  for (std::uint32_t id = 0; id < logits.size(); ++id) {
    if (!std::isfinite(logits[id])) {
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("the model's logit of token {} at position {} is not finite", id, position)};
    }
    if (logits[id] > logits[best]) best = id;
  }
  if (options_.temperature == 0.0f) return TokenId(best);

  candidates_.clear();
  for (std::uint32_t id = 0; id < logits.size(); ++id) {
    candidates_.push_back({logits[id] / options_.temperature, id});
  }
  const float best_logit = candidates_[best].logit;
  keep_min_p(best_logit);
  if (options_.top_k > 0) keep_top(options_.top_k);
  if (options_.top_p < 1.0f) keep_top_p();

  double total = 0;
  for (const Candidate& candidate : candidates_) {
    total += std::exp(double{candidate.logit} - best_logit);
  }
  double left = random_unit(options_.seed, options_.sample, position) * total;
  for (const Candidate& candidate : candidates_) {
    left -= std::exp(double{candidate.logit} - best_logit);
    if (left < 0) return TokenId(candidate.id);
  }
  return TokenId(candidates_.back().id);  // rounding left a crumb
}

void Sampler::keep_min_p(float best) {
  if (options_.min_p == 0.0f) return;
  const float lowest = best + std::log(options_.min_p);
  std::erase_if(candidates_, [lowest](const Candidate& c) { return c.logit < lowest; });
}

void Sampler::keep_top(std::size_t count) {
  count = std::min(count, candidates_.size());
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(count),
                    candidates_.end(), [](const Candidate& a, const Candidate& b) {
                      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
                    });
  candidates_.resize(count);
}

void Sampler::keep_top_p() {
  keep_top(candidates_.size());
  double total = 0;
  for (const Candidate& c : candidates_) total += std::exp(double{c.logit} - candidates_[0].logit);
  double sum = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    sum += std::exp(double{candidates_[i].logit} - candidates_[0].logit);
    if (sum >= double{options_.top_p} * total) {
      candidates_.resize(i + 1);
      return;
    }
  }
}

}  // namespace pagoda::engine
