#include "bench/model_shape.h"

#include <array>

namespace pagoda::bench {
namespace {

using gguf::TensorType;

// Sizes as the models' own configurations state them.
constexpr std::array<ModelShape, 3> kShapes = {{
    {.name = "smollm2-135m",
     .layers = 30,
     .width = 576,
     .hidden_width = 1536,
     .heads = 9,
     .kv_heads = 3,
     .head_dim = 64,
     .vocabulary = 49152,
     .matrix_type = TensorType::kQ4_1,
     .output_type = TensorType::kQ8_0},
    {.name = "llama-3.2-1b",
     .layers = 16,
     .width = 2048,
     .hidden_width = 8192,
     .heads = 32,
     .kv_heads = 8,
     .head_dim = 64,
     .vocabulary = 128256,
     .matrix_type = TensorType::kQ4_K,
     .output_type = TensorType::kQ6_K},
    {.name = "gemma-2b",
     .layers = 18,
     .width = 2048,
     .hidden_width = 16384,
     .heads = 8,
     .kv_heads = 1,
     .head_dim = 256,
     .vocabulary = 256000,
     .matrix_type = TensorType::kQ4_K,
     .output_type = TensorType::kQ6_K},
}};

}  // namespace

std::span<const ModelShape> model_shapes() { return kShapes; }

}  // namespace pagoda::bench
