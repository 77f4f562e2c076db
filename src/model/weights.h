// The tensors of a model, found and checked for shape and type: matrices stay in the mapped file,
// norms and biases (a few KB) become floats. A Weights must not outlive its gguf::File.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "kernels/ops.h"
#include "model/config.h"

namespace pagoda::model {

// y = x w^T + bias; the bias is empty when the model has none.
struct Projection {
  kernels::WeightMatrix weight;
  std::vector<float> bias;
};

// Returns rows [first, first + count) of a projection, which stay where they are.
Projection rows_of(const Projection& all, std::uint64_t first, std::uint64_t count);

// A gated feed-forward network. One of no rows is not there.
struct FeedForwardWeights {
  Projection gate;  // [hidden, width]
  Projection up;    // [hidden, width]
  Projection down;  // [width, hidden]
};

struct ExpertWeights {
  Projection router;                  // [experts, width]
  std::vector<float> selection_bias;  // [experts], of scores where experts are chosen; or empty
  std::vector<FeedForwardWeights> experts;  // empty in a dense layer
  Projection shared_gate;  // [1, width]: its sigmoid multiplies the shared expert; or of no rows
  std::vector<float> weight_scales;  // [experts], multiply the weights of those chosen; or empty
  // [width] each, or empty (ExpertsConfig::has_own_norms): of what router and experts see, and of
  // what the experts and the shared one add.
  std::vector<float> router_norm;
  std::vector<float> input_norm;
  std::vector<float> output_norm;
  std::vector<float> shared_output_norm;
};

// The weights of a layer with latents (LatentConfig). The layer's `query` is [heads * query dim,
// query_rank or width] then, and it has no `key` and no `value`.
struct LatentWeights {
  Projection query_down;             // [query_rank, width], or of no rows
  std::vector<float> query_norm;     // [query_rank]
  Projection down;                   // [rank + rope dims, width]
  std::vector<float> norm;           // [rank]
  std::vector<Projection> key_up;    // [heads] of [rank, plain_dim]: from queries to latents
  std::vector<Projection> value_up;  // [heads] of [value_dim, rank]
};

// Norms of branches are [width], or empty where the architecture has none there (BranchNorms).
struct LayerWeights {
  std::vector<float> attention_norm;
  Projection query;               // [heads * key_dim, width]
  Projection key;                 // [kv_heads * key_dim, width]
  Projection value;               // [kv_heads * value_dim, width]; or of no rows: keys are values
  std::vector<float> query_norm;  // [key_dim] for every head, [heads * key_dim], or empty
  std::vector<float> key_norm;    // [key_dim] for every head, [kv_heads * key_dim], or empty
  LatentWeights latent;
  Projection attention_output;  // [width, Config::mixed_width()]
  std::vector<float> attention_output_norm;
  std::vector<float> sinks;  // [heads], or empty
  std::vector<float> feed_forward_norm;
  FeedForwardWeights feed_forward;  // what every token uses: a dense layer, or the shared expert
  ExpertWeights experts;
  std::vector<float> feed_forward_output_norm;
  float output_scale = 1;  // multiplies the residual stream behind the layer
};

struct Weights {
  kernels::WeightMatrix embedding;  // [vocabulary, width]
  std::vector<LayerWeights> layers;
  std::vector<float> output_norm;       // [width]
  kernels::WeightMatrix output;         // [vocabulary, width]; the embedding when tied
  std::vector<float> rope_frequencies;  // [rope pairs]: divide the frequencies; or empty
  // Matrices that the file holds in another order.
  std::vector<std::shared_ptr<const std::vector<float>>> arranged;
};

// Calls use(matrix) for every weight matrix of a layer that GEMMs multiply by, whatever the layer
// has of them. `Layer` is LayerWeights, const or not.
template <class Layer, class Use>
void for_each_matrix(Layer& layer, Use use) {
  const auto all_of = [&](auto& network) {
    use(network.gate.weight);
    use(network.up.weight);
    use(network.down.weight);
  };
  use(layer.query.weight);
  use(layer.key.weight);
  use(layer.value.weight);
  use(layer.latent.query_down.weight);
  use(layer.latent.down.weight);
  for (auto& head : layer.latent.key_up) use(head.weight);
  for (auto& head : layer.latent.value_up) use(head.weight);
  use(layer.attention_output.weight);
  all_of(layer.feed_forward);
  use(layer.experts.router.weight);
  use(layer.experts.shared_gate.weight);
  for (auto& expert : layer.experts.experts) all_of(expert);
}

// The bytes of all matrices as the file holds them; a tied output counts again.
std::uint64_t bytes_in_file(const Weights& weights);

Result<Weights> load_weights(const gguf::File& file, const Config& config,
                             const kernels::KernelSet& kernels);

}  // namespace pagoda::model
