// The model of KV cache tutorials: one attention layer, no feed-forward, seeded random weights. It
// answers nothing of sense; it shows what the cache saves when little else is computed.
#pragma once

#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace pagoda::bench {

// Does not move: the weights point into it.
class ToyModel {
 public:
  // `width`: a multiple of 32.
  explicit ToyModel(std::uint32_t context_tokens, std::uint32_t width = 128,
                    std::uint64_t seed = 0);
  ToyModel(const ToyModel&) = delete;
  ToyModel& operator=(const ToyModel&) = delete;

  const model::Config& config() const { return config_; }
  const model::Weights& weights() const { return weights_; }

 private:
  kernels::WeightMatrix random_matrix(std::size_t rows, std::size_t columns);

  std::uint64_t seed_;
  model::Config config_;
  std::vector<std::vector<float>> matrices_;
  model::Weights weights_;
};

}  // namespace pagoda::bench
