// The tensors of a model, found and checked for shape and type: matrices stay in the mapped file,
// norms and biases (a few KB) become floats. A Weights must not outlive its gguf::File.
#pragma once

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

// Norms of branches are [width], or empty where the architecture has none there (BranchNorms).
struct LayerWeights {
  std::vector<float> attention_norm;
  Projection query;               // [heads * key_dim, width]
  Projection key;                 // [kv_heads * key_dim, width]
  Projection value;               // [kv_heads * value_dim, width]
  std::vector<float> query_norm;  // [key_dim] for every head, [heads * key_dim], or empty
  std::vector<float> key_norm;    // [key_dim] for every head, [kv_heads * key_dim], or empty
  Projection attention_output;    // [width, heads * value_dim]
  std::vector<float> attention_output_norm;
  std::vector<float> feed_forward_norm;
  Projection gate;  // [hidden_width, width]
  Projection up;    // [hidden_width, width]
  Projection down;  // [width, hidden_width]
  std::vector<float> feed_forward_output_norm;
};

struct Weights {
  kernels::WeightMatrix embedding;  // [vocabulary, width]
  std::vector<LayerWeights> layers;
  std::vector<float> output_norm;       // [width]
  kernels::WeightMatrix output;         // [vocabulary, width]; the embedding when tied
  std::vector<float> rope_frequencies;  // [rope pairs]: divide the frequencies; or empty
};

Result<Weights> load_weights(const gguf::File& file, const Config& config,
                             const kernels::KernelSet& kernels);

}  // namespace pagoda::model
