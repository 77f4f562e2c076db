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
  void (*describe)(model::Config&) = nullptr;  // what else there is
};

void describe_qwen3_mixture(model::Config& config) {
  config.experts = {.router = {.experts = 128, .chosen = 8, .is_normalised = true},
                    .hidden_width = 768};
}

void describe_gpt_oss(model::Config& config) {
  config.gate = model::GateKind::kClampedSwiGlu;
  config.has_sinks = true;
  config.experts = {
      .router = {.experts = 32, .chosen = 4, .score = kernels::RouterScore::kSoftmaxOfChosen},
      .hidden_width = 2880};
  for (std::uint32_t layer = 0; layer < config.layers; layer += 2) {
    config.attention[layer].window = 128;
  }
}

// One latent row a token: 512 values and 64 that rotate.
void describe_deepseek_v2_lite(model::Config& config) {
  config.latent = {.rank = 512, .query_rank = 0, .plain_dim = 128, .value_dim = 128};
  config.key_dim = 576;
  config.value_dim = 512;
  config.attention_scale = 0.0721687836f;  // 1 / sqrt(128 + 64)
  config.ropes.front().dims = 64;
  config.experts = {.router = {.experts = 64, .chosen = 6},
                    .hidden_width = 1408,
                    .shared_width = 2816,
                    .first_layer = 1};
}

// From the models' own configuration files.
constexpr std::array<NamedShape, 6> kShapes = {{
    {"llama-3-8b", 32, 4096, 14336, 32, 8, 128, 128256, 131072, 500000, false},
    {"llama-3.2-1b", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 500000, false},
    {"qwen3-0.6b", 28, 1024, 3072, 16, 8, 128, 151936, 40960, 1000000, true},
    {"qwen3-30b-a3b", 48, 2048, 6144, 32, 4, 128, 151936, 40960, 1000000, true,
     describe_qwen3_mixture},
    {"gpt-oss-20b", 24, 2880, 2880, 64, 8, 64, 201088, 131072, 150000, false, describe_gpt_oss},
    {"deepseek-v2-lite", 27, 2048, 10944, 16, 1, 576, 102400, 163840, 10000, false,
     describe_deepseek_v2_lite},
}};

constexpr std::array<std::pair<std::string_view, gguf::TensorType>, 7> kTypes = {{
    {"bf16", gguf::TensorType::kBF16},
    {"q8_0", gguf::TensorType::kQ8_0},
    {"q4_0", gguf::TensorType::kQ4_0},
    {"q4_1", gguf::TensorType::kQ4_1},
    {"q4_k", gguf::TensorType::kQ4_K},
    {"q6_k", gguf::TensorType::kQ6_K},
    {"mxfp4", gguf::TensorType::kMXFP4},  // of experts; all else is bf16
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
    if (shape.describe != nullptr) shape.describe(config);
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
  std::string names;
  for (const auto& [known, type] : kTypes) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known);
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("`weights`: '{}' is none of {}", name, names)};
}

}  // namespace pagoda::app
