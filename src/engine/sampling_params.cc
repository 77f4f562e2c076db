#include "engine/sampling_params.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>

#include "base/random.h"

namespace pagoda::engine {
namespace {

// Draws use streams whose low half is zero (top_p_sampler.h): sequence seeds come from other
// streams.
constexpr std::uint64_t kSequenceStream = 1;
constexpr std::uint64_t kFoldStream = 2;
constexpr int kSeedSpareBits = 11;  // 64 - 53

template <class Value>
Error bad_option(std::string_view name, Value value, std::string_view range) {
  return {ErrorCode::kInvalidArgument, fmt::format("{} is {}, expected {}", name, value, range)};
}

// False for NaN.
bool is_within(float value, float low, float high) { return value >= low && value <= high; }

Status check_bias(const LogitBias& entry, std::uint32_t vocabulary) {
  if (entry.token.value() >= vocabulary) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("logit_bias names token {}, expected below the vocabulary of {}",
                             entry.token.value(), vocabulary)};
  }
  if (entry.bias != -std::numeric_limits<float>::infinity() && !is_within(entry.bias, -100, 100)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("logit_bias of token {} is {}, expected -100 to 100",
                             entry.token.value(), entry.bias)};
  }
  return ok_status();
}

Status check_count(std::string_view name, std::optional<std::uint32_t> count,
                   std::uint32_t vocabulary) {
  if (count.value_or(0) <= vocabulary) return ok_status();
  return bad_option(name, *count, fmt::format("at most the vocabulary of {}", vocabulary));
}

}  // namespace

std::uint64_t seed_of_sequence(std::uint64_t seed, std::uint32_t sequence) {
  return sequence == 0 ? seed : random_bits(seed, kSequenceStream, sequence) >> kSeedSpareBits;
}

std::uint64_t reportable_seed(std::uint64_t seed) {
  return seed <= kSeedMax ? seed : random_bits(seed, kFoldStream, 0) >> kSeedSpareBits;
}

Status check_sampling(const SamplingParams& options, std::uint32_t vocabulary) {
  if (!is_within(options.temperature, 0, 100)) {
    return bad_option("temperature", options.temperature, "0 to 100");
  }
  if (!(options.top_p > 0.0f && options.top_p <= 1.0f)) {
    return bad_option("top_p", options.top_p, "above 0, at most 1");
  }
  if (!is_within(options.min_p, 0, 1)) return bad_option("min_p", options.min_p, "0 to 1");
  if (!(options.repetition_penalty > 0.0f) || std::isinf(options.repetition_penalty)) {
    return bad_option("repetition_penalty", options.repetition_penalty, "above 0, finite");
  }
  if (!is_within(options.presence_penalty, -2, 2)) {
    return bad_option("presence_penalty", options.presence_penalty, "-2 to 2");
  }
  if (!is_within(options.frequency_penalty, -2, 2)) {
    return bad_option("frequency_penalty", options.frequency_penalty, "-2 to 2");
  }
  for (const LogitBias& entry : options.logit_bias) {
    RETURN_IF_ERROR(check_bias(entry, vocabulary));
  }
  if (options.n < 1 || options.n > kSequencesPerRequestMax) {
    return bad_option("n", options.n, fmt::format("1 to {}", kSequencesPerRequestMax));
  }
  RETURN_IF_ERROR(check_count("logprobs", options.logprobs, vocabulary));
  return check_count("prompt_logprobs", options.prompt_logprobs, vocabulary);
}

}  // namespace pagoda::engine
