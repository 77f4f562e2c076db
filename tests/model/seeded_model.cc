#include "model/seeded_model.h"

#include <cstring>

namespace pagoda::model {
namespace {

// A head of models with latents: dimensions that are not rotated, and those of its output.
constexpr std::uint32_t kPlainDim = 32;
constexpr std::uint32_t kLatentValueDim = 24;

std::vector<float> norm(std::size_t width) {
  std::vector<float> weight(width);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = 1.0f + uniform(50, i, 0.25f);
  return weight;
}

}  // namespace

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
             .experts = {.router = shape.router, .hidden_width = shape.expert_width},
             .has_sinks = shape.sinks,
             .score_cap = shape.score_cap,
             .ropes = {{.dims = shape.head_dim}},
             .attention = {}};
  for (std::uint32_t i = 0; i < shape.layers; ++i) {
    config_.attention.push_back({i % 2 == 0 ? shape.window : 0});
  }
  if (shape.latent_rank > 0) {
    config_.latent = {
        .rank = shape.latent_rank, .plain_dim = kPlainDim, .value_dim = kLatentValueDim};
    config_.kv_heads = 1;
    config_.key_dim = shape.latent_rank + shape.head_dim;
    config_.value_dim = shape.latent_rank;
  }
  config_.has_output_scales = shape.output_scale != 1;
  if (shape.qk_norm) config_.ropes.front().pairing = kernels::RopePairing::kHalfSplit;
  for (std::uint32_t i = 0; i < shape.layers; ++i) {
    LayerWeights layer;
    layer.attention_norm = norm(shape.width);
    if (shape.latent_rank > 0) {
      add_latent_projections(shape, layer);
    } else {
      add_projections(shape, layer);
    }
    if (shape.sinks) {
      for (std::uint32_t h = 0; h < shape.heads; ++h) layer.sinks.push_back(uniform(60, h, 3.0f));
    }
    layer.feed_forward_norm = norm(shape.width);
    layer.output_scale = shape.output_scale;
    if (shape.router.experts == 0) {
      layer.feed_forward = network(shape.hidden_width, shape.width);
    } else {
      layer.experts.router.weight = matrix(shape.router.experts, shape.width);
      for (std::uint32_t e = 0; e < shape.router.experts; ++e) {
        layer.experts.selection_bias.push_back(uniform(70, e, 0.1f));
        layer.experts.experts.push_back(network(shape.expert_width, shape.width));
      }
    }
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

void SeededModel::add_projections(const ModelShape& shape, LayerWeights& layer) {
  const std::size_t queries = std::size_t{shape.heads} * shape.head_dim;
  const std::size_t keys = std::size_t{shape.kv_heads} * shape.head_dim;
  if (shape.qk_norm) layer.query_norm = layer.key_norm = norm(shape.head_dim);
  layer.query.weight = matrix(queries, shape.width);
  layer.key.weight = matrix(keys, shape.width);
  layer.value.weight = matrix(keys, shape.width);
  layer.attention_output.weight = matrix(shape.width, queries);
}

void SeededModel::add_latent_projections(const ModelShape& shape, LayerWeights& layer) {
  const LatentConfig& latent = config_.latent;
  layer.query.weight =
      matrix(std::size_t{shape.heads} * latent.query_dim(shape.head_dim), shape.width);
  layer.latent.down.weight = matrix(config_.key_dim, shape.width);
  layer.latent.norm = norm(latent.rank);
  for (std::uint32_t h = 0; h < shape.heads; ++h) {
    layer.latent.key_up.emplace_back().weight = matrix(latent.rank, latent.plain_dim);
    layer.latent.value_up.emplace_back().weight = matrix(latent.value_dim, latent.rank);
  }
  layer.attention_output.weight = matrix(shape.width, config_.mixed_width(0));
}

FeedForwardWeights SeededModel::network(std::size_t hidden_width, std::size_t width) {
  FeedForwardWeights made;
  made.gate.weight = matrix(hidden_width, width);
  made.up.weight = matrix(hidden_width, width);
  made.down.weight = matrix(width, hidden_width);
  return made;
}

kernels::WeightMatrix SeededModel::matrix(std::size_t rows, std::size_t columns) {
  return matrices_.emplace_back(random_matrix(type_, rows, columns, 1000 + matrices_.size())).view;
}

}  // namespace pagoda::model
