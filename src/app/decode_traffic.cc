#include "app/decode_traffic.h"

#include <algorithm>

namespace pagoda::app {
namespace {

std::uint64_t bytes_of(const kernels::WeightMatrix& matrix) {
  return std::uint64_t{matrix.rows} * matrix.row_bytes;
}

std::uint64_t layer_token_bytes(const model::Config& config, kv::memory::Element element) {
  return std::uint64_t{config.kv_heads} * (config.key_dim + config.value_dim) *
         kv::memory::element_bytes(element);
}

}  // namespace

std::uint64_t weight_bytes_read(const model::Weights& weights) {
  std::uint64_t bytes = bytes_of(weights.output);
  for (const model::LayerWeights& layer : weights.layers) {
    for (const model::Projection* const projection :
         {&layer.query, &layer.key, &layer.value, &layer.attention_output, &layer.gate, &layer.up,
          &layer.down}) {
      bytes += bytes_of(projection->weight);
    }
  }
  return bytes;
}

std::uint64_t kv_bytes_per_token(const model::Config& config, kv::memory::Element element) {
  return config.layers * layer_token_bytes(config, element);
}

std::uint64_t kv_bytes_read(const model::Config& config, kv::memory::Element element,
                            std::uint64_t tokens) {
  std::uint64_t rows = 0;
  for (const kv::memory::AttentionSpec spec : config.attention) {
    rows += spec.window > 0 ? std::min<std::uint64_t>(tokens, spec.window) : tokens;
  }
  return rows * layer_token_bytes(config, element);
}

}  // namespace pagoda::app
