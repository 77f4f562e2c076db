#include "bench/toy_model.h"

#include <cmath>

#include "base/random.h"

namespace pagoda::bench {
namespace {

constexpr std::uint32_t kHeads = 4;
constexpr std::uint32_t kVocabulary = 128;

}  // namespace

ToyModel::ToyModel(std::uint32_t context_tokens, std::uint32_t width, std::uint64_t seed)
    : seed_(seed),
      config_{.layers = 1,
              .width = width,
              .hidden_width = 0,
              .heads = kHeads,
              .kv_heads = kHeads,
              .key_dim = width / kHeads,
              .value_dim = width / kHeads,
              .vocabulary = kVocabulary,
              .context = context_tokens,
              .ropes = {{.dims = width / kHeads}},
              .attention = {kv::memory::AttentionSpec{}}} {
  const std::vector<float> ones(width, 1.0f);
  model::LayerWeights layer;
  layer.attention_norm = ones;
  layer.query.weight = random_matrix(width, width);
  layer.key.weight = random_matrix(width, width);
  layer.value.weight = random_matrix(width, width);
  layer.attention_output.weight = random_matrix(width, width);
  layer.feed_forward_norm = ones;
  layer.feed_forward.gate.weight = random_matrix(0, width);
  layer.feed_forward.up.weight = random_matrix(0, width);
  layer.feed_forward.down.weight = random_matrix(width, 0);
  weights_.layers.push_back(std::move(layer));
  weights_.embedding = random_matrix(kVocabulary, width);
  weights_.output = random_matrix(kVocabulary, width);
  weights_.output_norm = ones;
}

// Uniform, of the variance that keeps a product's inputs and outputs of one size.
kernels::WeightMatrix ToyModel::random_matrix(std::size_t rows, std::size_t columns) {
  std::vector<float>& values = matrices_.emplace_back(rows * columns);
  const double bound = std::sqrt(3.0 / config_.width);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((2 * random_unit(seed_, matrices_.size(), i) - 1) * bound);
  }
  return {.type = gguf::TensorType::kF32,
          .data = reinterpret_cast<const std::byte*>(values.data()),
          .rows = rows,
          .columns = columns,
          .row_bytes = columns * sizeof(float)};
}

}  // namespace pagoda::bench
