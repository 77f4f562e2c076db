#include "app/random_shapes.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace pagoda::app {
namespace {

struct NamedShape {
  std::string_view name;
  std::uint32_t layers;
  std::uint32_t width;
  std::uint32_t hidden_width;
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t head_dim;
  std::uint32_t vocabulary;
  std::uint32_t context;
  double rope_base;
  bool qk_norm;
};

// From the models' own configuration files.
constexpr std::array<NamedShape, 3> kShapes = {{
    {"llama-3-8b", 32, 4096, 14336, 32, 8, 128, 128256, 131072, 500000, false},
    {"llama-3.2-1b", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 500000, false},
    {"qwen3-0.6b", 28, 1024, 3072, 16, 8, 128, 151936, 40960, 1000000, true},
}};

constexpr std::array<std::pair<std::string_view, gguf::TensorType>, 6> kTypes = {{
    {"bf16", gguf::TensorType::kBF16},
    {"q8_0", gguf::TensorType::kQ8_0},
    {"q4_0", gguf::TensorType::kQ4_0},
    {"q4_1", gguf::TensorType::kQ4_1},
    {"q4_k", gguf::TensorType::kQ4_K},
    {"q6_k", gguf::TensorType::kQ6_K},
}};

}  // namespace

std::string random_shape_names() {
  std::string names;
  for (const NamedShape& shape : kShapes) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", shape.name);
  }
  return names;
}

Result<model::Config> random_shape(std::string_view name) {
  for (const NamedShape& shape : kShapes) {
    if (shape.name != name) continue;
    model::Config config = {
        .layers = shape.layers,
        .width = shape.width,
        .hidden_width = shape.hidden_width,
        .heads = shape.heads,
        .kv_heads = shape.kv_heads,
        .key_dim = shape.head_dim,
        .value_dim = shape.head_dim,
        .vocabulary = shape.vocabulary,
        .context = shape.context,
        .norm_epsilon = shape.qk_norm ? 1e-6f : 1e-5f,
        .qk_norm = shape.qk_norm ? model::QkNormSpan::kHead : model::QkNormSpan::kNone,
        .ropes = {{.dims = shape.head_dim, .base = shape.rope_base}},
        .attention = {}};
    if (shape.qk_norm) config.ropes.front().pairing = kernels::RopePairing::kHalfSplit;
    config.attention.assign(config.layers, {});
    return config;
  }
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("`random_weights`: no shape '{}'; there are {}", name, random_shape_names())};
}

Result<gguf::TensorType> random_weight_type(std::string_view name) {
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("`weights`: '{}' is none of bf16, q8_0, q4_0, q4_1, q4_k, q6_k", name)};
}

}  // namespace pagoda::app
