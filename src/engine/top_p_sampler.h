// Draws a token from a row by weight, within the shortest head of the row that holds top_p of the
// mass, without sorting the row.
//
// The head, in the order of logit_order.h, is every token before which less than top_p * total
// lies. The draw goes in rounds. A round draws from its field, by weight, walking ids upwards; the
// first field is the whole row. If the token is in the head, it is taken. If not, the tokens before
// it are the next round's field: they still hold the whole head, so that each round draws from the
// head without preference. A share of at least top_p of the rows ends with the first round.
//
// Masses are sums of integers (kernels/ops.h), so that nothing here depends on an order of adding,
// and the random number of a round is a function of (seed, round, position).
#pragma once

#include <cstdint>
#include <span>

#include "engine/sampler_scratch.h"

namespace pagoda::engine {

// RandomKey says where a random number stands among all others.
struct RandomKey {
  std::uint64_t seed;
  std::uint64_t position;
};

struct TopPParams {
  float best;                 // the highest logit of the row
  float inverse_temperature;  // 1 / temperature
  float min_p;  // tokens with less than this share of the best one's probability weigh nothing
  float top_p;
};

// Returns an index into `logits`. Tokens that have less than 2^-31 of the best one's probability
// are never drawn. Uses the scratch's weights and block masses.
std::uint32_t sample_top_p(std::span<const float> logits, const TopPParams& shape,
                           const RandomKey& key, SamplerScratch& scratch);

}  // namespace pagoda::engine
