#include "app/decode_traffic.h"

#include <algorithm>

namespace pagoda::app {
namespace {

std::uint64_t bytes_of(const kernels::WeightMatrix& matrix) {
  return std::uint64_t{matrix.rows} * matrix.row_bytes;
}

std::uint64_t layer_token_bytes(const model::Config& config, std::uint32_t layer,
                                kv::memory::Elements elements) {
  const model::HeadShape heads = config.heads_of(layer);
  const kv::memory::PageLayout row = {.elements = elements,
                                      .block_tokens = 1,
                                      .layers = 1,
                                      .kv_heads = heads.kv_heads,
                                      .key_dim = heads.key_dim,
                                      .value_dim = heads.value_dim,
                                      .values_in_keys = config.latent.rank > 0};
  return row.layer_bytes();
}

}  // namespace

std::uint64_t weight_bytes_read(const model::Weights& weights, const model::Config& config) {
  const auto network_bytes = [](const model::FeedForwardWeights& network) {
    return bytes_of(network.gate.weight) + bytes_of(network.up.weight) +
           bytes_of(network.down.weight);
  };
  std::uint64_t bytes = bytes_of(weights.output);
  for (const model::LayerWeights& layer : weights.layers) {
    model::for_each_matrix(layer,
                           [&](const kernels::WeightMatrix& matrix) { bytes += bytes_of(matrix); });
    std::uint64_t experts = 0;
    for (const model::FeedForwardWeights& expert : layer.experts.experts) {
      experts += network_bytes(expert);
    }
    if (experts == 0) continue;
    const kernels::Router& router = config.experts.router;
    bytes -= experts - experts / router.experts * router.chosen;
  }
  return bytes;
}

std::uint64_t kv_bytes_per_token(const model::Config& config, kv::memory::Elements elements) {
  std::uint64_t bytes = 0;
  for (std::uint32_t layer = 0; layer < config.layers - config.shared_kv_layers; ++layer) {
    bytes += layer_token_bytes(config, layer, elements);
  }
  return bytes;
}

std::uint64_t kv_bytes_read(const model::Config& config, kv::memory::Elements elements,
                            std::uint64_t tokens) {
  std::uint64_t bytes = 0;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    const std::uint32_t window = config.attention[layer].window;
    const std::uint64_t rows = window > 0 ? std::min<std::uint64_t>(tokens, window) : tokens;
    bytes += rows * layer_token_bytes(config, layer, elements);
  }
  return bytes;
}

}  // namespace pagoda::app
