// The sizes of a model's operations, without a model.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gguf/tensor_type.h"

namespace pagoda::bench {

struct ModelShape {
  std::string_view name;
  std::uint32_t layers;
  std::uint32_t width;
  std::uint32_t hidden_width;
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t head_dim;  // of keys and of values
  std::uint32_t vocabulary;
  gguf::TensorType matrix_type;  // of the layers' matrices
  gguf::TensorType output_type;  // of the matrix that makes logits
};

// The default model first.
std::span<const ModelShape> model_shapes();

}  // namespace pagoda::bench
