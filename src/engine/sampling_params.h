// SamplingParams holds what a request may ask of the sampler, and check_sampling the ranges.
//
// Meanings and defaults follow vLLM where it defines them. Sequence i of n is drawn with a seed of
// its own, seed_of_sequence(seed, i): asked for alone with that seed, it is the same sequence.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/shared_list.h"
#include "base/token_id.h"

namespace pagoda::engine {

struct LogitBias {
  TokenId token;
  float bias;  // -100 to 100, or -infinity: never this token
};

struct SamplingParams {
  float temperature = 0.0f;         // 0 to 100; below kGreedyBelow the best token is taken
  std::uint32_t top_k = 0;          // 0: all
  float top_p = 1.0f;               // above 0, to 1
  float min_p = 0.0f;               // 0 to 1
  float repetition_penalty = 1.0f;  // above 0; over prompt and output
  float presence_penalty = 0.0f;    // -2 to 2; over the output, once per token that occurs
  float frequency_penalty = 0.0f;   // -2 to 2; over the output, once per occurrence
  SharedList<LogitBias> logit_bias = {};
  std::uint64_t seed = 0;
  std::uint32_t n = 1;  // sequences of one prompt, 1 to kSequencesPerRequestMax
  std::optional<std::uint32_t> logprobs = {};  // this many best tokens besides the sampled one
  std::optional<std::uint32_t> prompt_logprobs = {};  // the same for the prompt's tokens
};

inline constexpr float kGreedyBelow = 1e-5f;
inline constexpr std::uint32_t kSequencesPerRequestMax = 128;

// Reported seeds are at most this: programs whose numbers are 64-bit floats read them back exactly.
inline constexpr std::uint64_t kSeedMax = (std::uint64_t{1} << 53) - 1;

// Returns the seed itself for the first sequence, for others one derived from both, 0 to kSeedMax.
std::uint64_t seed_of_sequence(std::uint64_t seed, std::uint32_t sequence);
// Returns the seed itself up to kSeedMax, else one derived from it, 0 to kSeedMax.
std::uint64_t reportable_seed(std::uint64_t seed);

inline bool is_greedy(const SamplingParams& options) { return options.temperature < kGreedyBelow; }
inline bool has_penalties(const SamplingParams& options) {
  return options.repetition_penalty != 1.0f || options.presence_penalty != 0.0f ||
         options.frequency_penalty != 0.0f;
}

// The error names the option that is out of its range, its value and the range.
Status check_sampling(const SamplingParams& options, std::uint32_t vocabulary);

}  // namespace pagoda::engine
