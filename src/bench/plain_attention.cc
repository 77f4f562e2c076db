#include "bench/plain_attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/assert.h"
#include "base/random.h"

namespace pagoda::bench {
namespace {

// Partial sums of a dot product, so that the compiler may use vector registers.
constexpr std::size_t kPartialSums = 16;

float dot_product(const float* a, const float* b, std::size_t count) {
  std::array<float, kPartialSums> sums = {};
  std::size_t at = 0;
  for (; at + kPartialSums <= count; at += kPartialSums) {
    for (std::size_t i = 0; i < kPartialSums; ++i) sums[i] += a[at + i] * b[at + i];
  }
  for (; at < count; ++at) sums[0] += a[at] * b[at];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

void add_scaled(float scale, const float* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] += scale * from[i];
}

std::vector<float> random_weights(std::size_t width, std::uint64_t seed) {
  std::vector<float> weights(3 * width * width);
  const double bound = std::sqrt(3.0 / static_cast<double>(width));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>((2 * random_unit(seed, 0, i) - 1) * bound);
  }
  return weights;
}

}  // namespace

PlainAttention::PlainAttention(std::size_t width, std::vector<float> weights)
    : width_(width), weights_(std::move(weights)) {
  ASSERT(weights_.size() == 3 * width * width, "there are three square matrices");
}

PlainAttention::PlainAttention(std::size_t width, std::uint64_t seed)
    : PlainAttention(width, random_weights(width, seed)) {}

void PlainAttention::project(std::size_t matrix, std::span<const float> input,
                             float* output) const {
  const float* const rows = weights_.data() + matrix * width_ * width_;
  std::fill_n(output, width_, 0.0f);
  for (std::size_t i = 0; i < width_; ++i) add_scaled(input[i], rows + i * width_, width_, output);
}

void PlainAttention::attend(std::span<const float> query, const Cache& cache, std::size_t tokens,
                            std::vector<float>& scores, std::span<float> output) const {
  const float scale = 1.0f / std::sqrt(static_cast<float>(width_));
  scores.resize(tokens);
  for (std::size_t t = 0; t < tokens; ++t) {
    scores[t] = scale * dot_product(query.data(), cache.keys.data() + t * width_, width_);
  }
  const float most = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) {
    score = std::exp(score - most);
    sum += score;
  }
  std::fill(output.begin(), output.end(), 0.0f);
  for (std::size_t t = 0; t < tokens; ++t) {
    add_scaled(scores[t] / sum, cache.values.data() + t * width_, width_, output.data());
  }
}

std::vector<float> PlainAttention::forward(std::span<const float> inputs, Cache& cache) const {
  const std::size_t before = cache.keys.size() / width_;
  const std::size_t count = inputs.size() / width_;
  cache.keys.resize((before + count) * width_);
  cache.values.resize((before + count) * width_);
  std::vector<float> outputs(count * width_);
  std::vector<float> query(width_);
  std::vector<float> scores;
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const float> input = inputs.subspan(i * width_, width_);
    project(0, input, query.data());
    project(1, input, cache.keys.data() + (before + i) * width_);
    project(2, input, cache.values.data() + (before + i) * width_);
    attend(query, cache, before + i + 1, scores, std::span(outputs).subspan(i * width_, width_));
  }
  return outputs;
}

}  // namespace pagoda::bench
