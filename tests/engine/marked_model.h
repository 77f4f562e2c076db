// In a MarkedModel one token has a query, key or value that is out of range of a cache's element.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/request.h"
#include "kernels/select.h"
#include "model/test_model.h"

namespace pagoda::engine {

inline constexpr std::uint32_t kMarkedToken = 50;
inline constexpr std::size_t kMarkedAt = 20;  // position in the prompt that has it

enum class Part { kQuery, kKey, kValue };

// Excess holds factors whose product goes beyond fp16 alone, or beyond every element.
struct Excess {
  float norm;
  float weight;
};
inline constexpr Excess kBeyondFp16 = {1e3f, 1e3f};
inline constexpr Excess kBeyondAll = {1e30f, 1e10f};

// MarkedModel is the given model with one column of the embedding that only the marked token has,
// and which reaches nothing but one dimension of the last head of the first layer's queries, keys
// or values. It does not move: the weights point into it.
class MarkedModel {
 public:
  MarkedModel(const model::ModelParts& of, Part part, Excess excess)
      : config_(of.config), weights_(of.weights) {
    float* const embedding = copy(weights_.embedding);
    for (std::size_t row = 0; row < weights_.embedding.rows; ++row) {
      embedding[row * config_.width] = row == kMarkedToken ? 1.0f : 0.0f;
    }
    model::LayerWeights& layer = weights_.layers.front();
    layer.attention_norm[0] = excess.norm;
    model::Projection* const parts[] = {&layer.query, &layer.key, &layer.value};
    for (model::Projection* const each : parts) {
      float* const matrix = copy(each->weight);
      for (std::size_t row = 0; row < each->weight.rows; ++row) matrix[row * config_.width] = 0;
      const bool reached = each == parts[static_cast<int>(part)];
      if (reached) matrix[(each->weight.rows - 1) * config_.width] = excess.weight;
    }
  }
  MarkedModel(const MarkedModel&) = delete;
  MarkedModel& operator=(const MarkedModel&) = delete;

  const model::Config& config() const { return config_; }
  const model::Weights& weights() const { return weights_; }
  operator model::ModelParts() const { return {config_, weights_}; }

 private:
  // Converts the matrix to floats of our own.
  float* copy(kernels::WeightMatrix& matrix) {
    std::vector<float>& values = matrices_.emplace_back(matrix.rows * matrix.columns);
    for (std::size_t row = 0; row < matrix.rows; ++row) {
      kernels::ref_set().unpack_row(matrix, row, values.data() + row * matrix.columns);
    }
    matrix = {.type = gguf::TensorType::kF32,
              .data = reinterpret_cast<const std::byte*>(values.data()),
              .rows = matrix.rows,
              .columns = matrix.columns,
              .row_bytes = matrix.columns * sizeof(float)};
    return values.data();
  }

  model::Config config_;
  model::Weights weights_;
  std::deque<std::vector<float>> matrices_;
};

// Makes a prompt with the marked token, or the same without.
inline Request marked_request(const model::Config& config, bool marked) {
  Request request;
  request.prompt = model::random_tokens(config, 48, 3);
  std::replace(request.prompt.begin(), request.prompt.end(), TokenId(kMarkedToken), TokenId(1));
  if (marked) request.prompt[kMarkedAt] = TokenId(kMarkedToken);
  request.end.max_tokens = 4;
  request.end.ignore_eos = true;
  request.sampling.logprobs = 1;
  return request;
}

}  // namespace pagoda::engine
