// Logits to a token.
//
// Temperature 0 takes the highest logit, ties to the lowest id. Otherwise, in this order: logits
// are divided by the temperature; tokens below min_p times the best one's probability go; all but
// the top_k best go; the tail beyond cumulative probability top_p goes (at least one stays); the
// rest is drawn from. The random number is a function of (seed, sample, position) alone, so that
// a batch cannot change a sampled answer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace pagoda::engine {

struct SamplingOptions {
  float temperature = 0.0f;  // 0 to 100
  std::uint32_t top_k = 0;   // 0: all
  float top_p = 1.0f;        // above 0, to 1
  float min_p = 0.0f;        // 0 to 1
  std::uint64_t seed = 0;
  std::uint64_t sample = 0;  // which of n answers to one prompt
};

// Names the option that is out of its range.
Status check_sampling(const SamplingOptions& options);

class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options) {}

  // The token for absolute position `position`; an error when a logit is not finite.
  Result<TokenId> sample(std::span<const float> logits, std::uint64_t position);

 private:
  struct Candidate {
    float logit;
    std::uint32_t id;
  };

  void keep_min_p(float best);
  void keep_top(std::size_t count);
  void keep_top_p();

  SamplingOptions options_;
  std::vector<Candidate> candidates_;
};

}  // namespace pagoda::engine
