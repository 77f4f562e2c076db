// The attention of KV cache tutorials and nothing else: one head with projections of Q, K and V, in
// fp32 on one thread. There is no output projection, norm, rotary embedding or vocabulary; inputs
// are vectors that are given.
//
//   q, k, v = x Wq, x Wk, x Wv        y = softmax(q k^T / sqrt(width)) v, over x and what is before
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pagoda::bench {

class PlainAttention {
 public:
  // The rows of K and V that were computed, [token][width] each.
  struct Cache {
    std::vector<float> keys;
    std::vector<float> values;
  };

  // `weights`: Wq, Wk and Wv, [input][output] each, width x width.
  PlainAttention(std::size_t width, std::vector<float> weights);
  // Random weights of the variance that keeps inputs and outputs of one size, the same every time.
  PlainAttention(std::size_t width, std::uint64_t seed);

  // Computes the outputs of the inputs, [token][width], which follow the tokens of the cache, and
  // leaves their rows there. A row's result depends on its own input and those before it alone,
  // however they are divided over calls.
  std::vector<float> forward(std::span<const float> inputs, Cache& cache) const;

  std::size_t width() const { return width_; }

 private:
  void project(std::size_t matrix, std::span<const float> input, float* output) const;
  void attend(std::span<const float> query, const Cache& cache, std::size_t tokens,
              std::vector<float>& scores, std::span<float> output) const;

  std::size_t width_;
  std::vector<float> weights_;
};

}  // namespace pagoda::bench
