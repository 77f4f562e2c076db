// Compares the sampler with its plain reference, token for token, with every kernel set.
#include "engine/sampler_reference.h"

#include <gtest/gtest.h>

#include "kernels/select.h"

namespace pagoda::engine {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(random_bits(seed_, 0, next_++) % bound);
  }
  float unit() { return static_cast<float>(random_unit(seed_, 0, next_++)); }
  bool one_in(std::uint32_t count) { return below(count) == 0; }
  template <class Value>
  Value one_of(std::initializer_list<Value> values) {
    return values.begin()[below(static_cast<std::uint32_t>(values.size()))];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

std::vector<float> random_row(Dice& dice, std::uint32_t vocabulary) {
  const float spread = dice.one_of({0.0f, 0.1f, 3.0f, 12.0f, 60.0f, 1e30f});
  const float grain = dice.one_of({0.0f, 0.0f, 0.5f});  // above 0: many ties
  std::vector<float> logits(vocabulary);
  for (float& logit : logits) {
    logit = spread * (dice.unit() + dice.unit() + dice.unit() - 1.5f);
    if (grain > 0) logit = std::round(logit / grain) * grain;
  }
  if (dice.one_in(2)) logits[dice.below(vocabulary)] += 0.7f * spread;  // a peak
  return logits;
}

std::vector<TokenId> random_tokens(Dice& dice, std::uint32_t vocabulary, std::uint32_t count) {
  std::vector<TokenId> tokens;
  for (std::uint32_t i = 0; i < count; ++i) tokens.emplace_back(dice.below(vocabulary));
  return tokens;
}

ReferenceRequest random_request(Dice& dice, std::uint32_t vocabulary) {
  ReferenceRequest request;
  SamplingParams& options = request.options;
  options.temperature = dice.one_of({0.0f, 0.01f, 0.7f, 1.0f, 1.0f, 2.0f, 100.0f});
  options.top_k = dice.one_of({0u, 0u, 0u, 1u, 2u, 40u, vocabulary - 1, vocabulary, 1u << 31});
  options.top_p = dice.one_of({1.0f, 0.95f, 0.9f, 0.5f, 0.1f, 1e-9f});
  options.min_p = dice.one_of({0.0f, 0.0f, 0.05f, 0.5f, 1.0f});
  options.repetition_penalty = dice.one_of({1.0f, 1.0f, 1.3f, 0.5f});
  options.presence_penalty = dice.one_of({0.0f, 0.0f, 1.5f, -2.0f});
  options.frequency_penalty = dice.one_of({0.0f, 0.0f, 0.3f, -0.7f});
  options.seed = dice.below(1000);
  request.sample = dice.below(4);
  request.prompt = random_tokens(dice, vocabulary, dice.below(40));
  request.answer = random_tokens(dice, vocabulary, dice.below(40));
  if (dice.one_in(3)) {
    std::vector<LogitBias> biases;
    for (const TokenId token : random_tokens(dice, vocabulary, 1 + vocabulary / 3)) {
      const bool banned = token.value() != 0 && dice.one_in(3);  // token 0 is left
      biases.push_back({token, banned ? -INFINITY : 20 * dice.unit() - 10});
    }
    options.logit_bias = std::move(biases);
  }
  if (vocabulary > 8 && dice.one_in(3)) {
    request.end.min_tokens = 20;
    request.end_tokens = {TokenId(1)};
    request.end.stop_token_ids = {TokenId(vocabulary - 1), TokenId(vocabulary - 3)};
  }
  return request;
}

TEST(SamplerReference, EverySetGivesTheReferenceTokenForAnyRowAndRequest) {
  Dice dice(2024);
  for (const std::uint32_t vocabulary : {2u, 3u, 8u, 13u, 100u, 255u, 257u, 1000u, 4099u}) {
    for (int i = 0; i < (vocabulary < 1000 ? 300 : 100); ++i) {
      const std::vector<float> logits = random_row(dice, vocabulary);
      const ReferenceRequest request = random_request(dice, vocabulary);
      ASSERT_TRUE(check_sampling(request.options, vocabulary).ok());
      SamplingState state = SamplingState(request.options, request.prompt,
                                          StopCriteria(request.end, request.end_tokens))
                                .fork(request.sample);
      for (const TokenId token : request.answer) state.accept(token);
      for (std::uint64_t position = 40; position < 44; ++position) {
        const TokenId expected = reference_sample(logits, request, position);
        for (const kernels::KernelSet* const set : kernels::available_sets()) {
          SamplerScratch scratch(*set, vocabulary);
          const auto sampled = sample(logits, state, scratch, position);
          ASSERT_TRUE(sampled.ok()) << sampled.error().message;
          ASSERT_EQ(sampled.value().token, expected)
              << set->name << ", vocabulary " << vocabulary << ", case " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::engine
