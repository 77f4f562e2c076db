#include "model/seeded_model.h"

#include <cstring>

namespace pagoda::model {

SeededModel::SeededModel(const ModelShape& shape) : type_(shape.type) {
  config_ = {.layers = shape.layers,
             .width = shape.width,
             .hidden_width = shape.hidden_width,
             .heads = shape.heads,
             .kv_heads = shape.kv_heads,
             .key_dim = shape.head_dim,
             .value_dim = shape.head_dim,
             .vocabulary = shape.vocabulary,
             .context = 4096,
             .qk_norm = shape.qk_norm ? QkNormSpan::kHead : QkNormSpan::kNone,
             .has_sinks = shape.sinks,
             .score_cap = shape.score_cap,
             .ropes = {{.dims = shape.head_dim}},
             .attention = {}};
  for (std::uint32_t i = 0; i < shape.layers; ++i) {
    config_.attention.push_back({i % 2 == 0 ? shape.window : 0});
  }
  const std::size_t queries = std::size_t{shape.heads} * shape.head_dim;
  const std::size_t keys = std::size_t{shape.kv_heads} * shape.head_dim;
  if (shape.qk_norm) config_.ropes.front().pairing = kernels::RopePairing::kHalfSplit;
  const auto norm = [](std::size_t width) {
    std::vector<float> weight(width);
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = 1.0f + uniform(50, i, 0.25f);
    return weight;
  };
  for (std::uint32_t i = 0; i < shape.layers; ++i) {
    LayerWeights layer;
    layer.attention_norm = norm(shape.width);
    if (shape.qk_norm) layer.query_norm = layer.key_norm = norm(shape.head_dim);
    layer.query.weight = matrix(queries, shape.width);
    layer.key.weight = matrix(keys, shape.width);
    layer.value.weight = matrix(keys, shape.width);
    layer.attention_output.weight = matrix(shape.width, queries);
    if (shape.sinks) {
      for (std::uint32_t h = 0; h < shape.heads; ++h) layer.sinks.push_back(uniform(60, h, 3.0f));
    }
    layer.feed_forward_norm = norm(shape.width);
    layer.feed_forward.gate.weight = matrix(shape.hidden_width, shape.width);
    layer.feed_forward.up.weight = matrix(shape.hidden_width, shape.width);
    layer.feed_forward.down.weight = matrix(shape.width, shape.hidden_width);
    weights_.layers.push_back(std::move(layer));
  }
  weights_.embedding = matrix(shape.vocabulary, shape.width);
  if (shape.poisoned) {
    constexpr std::uint16_t kInfinity = 0x7F80;  // bf16
    std::vector<std::byte>& bytes = matrices_.back().bytes;
    for (std::size_t i = 0; i < shape.width; ++i) {
      std::memcpy(bytes.data() + (kPoison.value() * shape.width + i) * 2, &kInfinity, 2);
    }
  }
  weights_.output = matrix(shape.vocabulary, shape.width);
  weights_.output_norm = norm(shape.width);
}

kernels::WeightMatrix SeededModel::matrix(std::size_t rows, std::size_t columns) {
  return matrices_.emplace_back(random_matrix(type_, rows, columns, 1000 + matrices_.size())).view;
}

}  // namespace pagoda::model
