#include "hf/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "hf/deepseek_keys.h"
#include "hf/expert_keys.h"
#include "hf/gemma4_keys.h"

namespace pagoda::hf {
namespace {

using enum TensorChange;

constexpr auto kPreNorms = std::to_array<TensorName>({
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
});
constexpr auto kPostNorms = std::to_array<TensorName>({
    {"post_attention_layernorm", "post_attention_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
});
constexpr auto kGemmaNames = std::to_array<TensorName>({
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
});
constexpr auto kGemma4Names = std::to_array<TensorName>({
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
    {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
    {"layer_scalar", "layer_output_scale.weight"},
    {"router.proj", "ffn_gate_inp"},
    {"router.scale", "ffn_gate_inp.scale"},
    {"router.per_expert_scale", "ffn_down_exps.scale"},
    {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    {"experts.down_proj", "ffn_down_exps.weight"},
});
constexpr auto kFusedNames = std::to_array<TensorName>({
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"mlp.gate_up_proj", "ffn_up"},
});
constexpr auto kGlm4Names = std::to_array<TensorName>({
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"post_self_attn_layernorm", "post_attention_norm"},
    {"post_mlp_layernorm", "post_ffw_norm"},
    {"mlp.gate_up_proj", "ffn_up"},
});
constexpr auto kMixtralNames = std::to_array<TensorName>({
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.experts.*.w1", "ffn_gate.*"},
    {"block_sparse_moe.experts.*.w2", "ffn_down.*"},
    {"block_sparse_moe.experts.*.w3", "ffn_up.*"},
});
constexpr auto kGraniteMoeNames = std::to_array<TensorName>({
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"block_sparse_moe.input_linear", "ffn_gate.*", kSplitGateUp},
    {"block_sparse_moe.output_linear", "ffn_down.*", kSplitExperts},
    {"shared_mlp.input_linear", "ffn_up_shexp"},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
});
constexpr auto kGraniteHybridNames = std::to_array<TensorName>({
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"shared_mlp.input_linear", "ffn_up"},
    {"shared_mlp.output_linear", "ffn_down"},
});
constexpr auto kExpertNames = std::to_array<TensorName>({
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.experts.*.gate_proj", "ffn_gate.*"},
    {"mlp.experts.*.up_proj", "ffn_up.*"},
    {"mlp.experts.*.down_proj", "ffn_down.*"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.kv_b_proj", "attn_kv_b"},
});
constexpr auto kGptOssNames = std::to_array<TensorName>({
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "post_attention_norm"},
    {"self_attn.sinks", "attn_sinks.weight"},
    {"mlp.router", "ffn_gate_inp"},
    {"mlp.experts.gate_up_proj_blocks", "ffn_gate_exps.weight", kMxfp4GateUp},
    {"mlp.experts.gate_up_proj_scales", "", kScales},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_exps.bias", kGateUpBias},
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", kTransposedGateUp},
    {"mlp.experts.down_proj_blocks", "ffn_down_exps.weight", kMxfp4Down},
    {"mlp.experts.down_proj_scales", "", kScales},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias"},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", kTransposedDown},
});

Status write_scores(const JsonFields& config, const KeyWriter& keys) {
  ASSIGN_OR_RETURN(const double scalar, config.number_or("query_pre_attn_scalar", 256));
  if (!(scalar > 0)) return config.refused("query_pre_attn_scalar", "expected a number above 0");
  keys.number("attention.scale", 1.0 / std::sqrt(scalar));
  return ok_status();
}

Status write_gemma2(const JsonFields& config, const KeyWriter& keys) {
  // Where a cap is null there is none; where it is absent it has its default.
  const auto cap = [&](const char* name, double fallback) -> Status {
    const bool is_null = config.contains(name) && !config.has(name);
    ASSIGN_OR_RETURN(const double value, config.number_or(name, is_null ? 0 : fallback));
    keys.number(name, value);
    return ok_status();
  };
  RETURN_IF_ERROR(cap("attn_logit_softcapping", 50));
  RETURN_IF_ERROR(cap("final_logit_softcapping", 30));
  return write_scores(config, keys);
}

Status write_gemma3(const JsonFields& config, const KeyWriter& keys) {
  if (config.has("final_logit_softcapping")) {
    ASSIGN_OR_RETURN(const double cap, config.number("final_logit_softcapping"));
    keys.number("final_logit_softcapping", cap);
  }
  // Gemma 3 has the field, and no cap of scores.
  return write_scores(config, keys);
}

Status write_granite_scales(const JsonFields& config, const KeyWriter& keys,
                            std::string_view default_positions) {
  constexpr std::array<std::pair<const char*, const char*>, 4> kScales = {{
      {"embedding_multiplier", "embedding_scale"},
      {"attention_multiplier", "attention.scale"},
      {"residual_multiplier", "residual_scale"},
      {"logits_scaling", "logit_scale"},
  }};
  for (const auto& [field, key] : kScales) {
    ASSIGN_OR_RETURN(const double scale, config.number_or(field, 1.0));
    keys.number(key, scale);
  }
  ASSIGN_OR_RETURN(const std::string positions,
                   config.text_or("position_embedding_type", default_positions));
  if (positions == "nope") keys.flag("rope.scaling.finetuned", false);
  if (positions != "nope" && positions != "rope") {
    return config.refused("position_embedding_type", "expected rope or nope");
  }
  return ok_status();
}

Status write_granite(const JsonFields& config, const KeyWriter& keys) {
  return write_granite_scales(config, keys, "rope");
}

Status write_granite_hybrid(const JsonFields& config, const KeyWriter& keys) {
  return write_granite_scales(config, keys, "nope");
}

// Granite 4.0 has sizes whose layers are all attention, and whose shared expert is all there is.
bool is_dense_granite(const JsonFields& config) {
  const bool new_name = config.has("layer_types");
  const Result<std::vector<std::string>> types =
      config.texts(new_name ? "layer_types" : "layers_block_type");
  const Result<std::uint64_t> layers = config.count("num_hidden_layers");
  const Result<std::uint64_t> experts = config.count("num_local_experts");
  if (!types.ok() || !layers.ok() || !experts.ok()) return false;
  const bool all_attend = std::all_of(
      types.value().begin(), types.value().end(),
      [](const std::string& type) { return type == "attention" || type == "full_attention"; });
  return all_attend && types.value().size() == layers.value() && experts.value() == 0;
}

Status write_smollm3(const JsonFields& config, const KeyWriter& /*keys*/) {
  ASSIGN_OR_RETURN(const std::uint64_t layers, config.count("num_hidden_layers"));
  constexpr std::string_view kWhy =
      "this version runs models in which every fourth layer does not rotate";
  if (const JsonValue* const list = config.find("no_rope_layers")) {
    if (!list->is_array() || list->size() < layers) {
      return config.wrong_type("no_rope_layers", "a 0 or 1 for each layer");
    }
    for (std::uint64_t layer = 0; layer < layers; ++layer) {
      if ((*list)[layer] != ((layer + 1) % 4 == 0 ? 0 : 1)) {
        return config.refused("no_rope_layers", kWhy);
      }
    }
    return ok_status();
  }
  ASSIGN_OR_RETURN(const std::uint64_t every, config.count_or("no_rope_layer_interval", 4));
  if (every != 4) return config.refused("no_rope_layer_interval", kWhy);
  return ok_status();
}

Status write_mixtral(const JsonFields& config, const KeyWriter& keys) {
  return write_experts(config, keys, "num_local_experts");
}

Status write_granitemoe(const JsonFields& config, const KeyWriter& keys) {
  RETURN_IF_ERROR(write_experts(config, keys, "num_local_experts"));
  ASSIGN_OR_RETURN(const std::uint64_t shared, config.count_or("shared_intermediate_size", 0));
  if (shared != 0) keys.count("expert_shared_feed_forward_length", shared);
  return write_granite(config, keys);
}

Status write_qwen_moe(const JsonFields& config, const KeyWriter& keys) {
  ASSIGN_OR_RETURN(const std::uint64_t step, config.count_or("decoder_sparse_step", 1));
  const JsonValue* const dense = config.find("mlp_only_layers");
  if (step != 1) return config.refused("decoder_sparse_step", "expected experts in every layer");
  if (dense != nullptr && !dense->empty()) {
    return config.refused("mlp_only_layers", "expected experts in every layer");
  }
  RETURN_IF_ERROR(write_experts(config, keys, "num_experts"));
  ASSIGN_OR_RETURN(const std::uint64_t hidden, config.count("moe_intermediate_size"));
  keys.count("expert_feed_forward_length", hidden);
  if (config.has("shared_expert_intermediate_size")) {
    ASSIGN_OR_RETURN(const std::uint64_t shared, config.count("shared_expert_intermediate_size"));
    keys.count("expert_shared_feed_forward_length", shared);
  }
  ASSIGN_OR_RETURN(const bool normed, config.flag_or("norm_topk_prob", false));
  keys.flag("expert_weights_norm", normed);
  return ok_status();
}

Status write_gpt_oss(const JsonFields& config, const KeyWriter& keys) {
  RETURN_IF_ERROR(write_experts(config, keys, "num_local_experts"));
  ASSIGN_OR_RETURN(const std::uint64_t hidden, config.count("intermediate_size"));
  keys.count("expert_feed_forward_length", hidden);
  const auto fixed = [&](const char* field, double expected) -> Status {
    ASSIGN_OR_RETURN(const double value, config.number_or(field, expected));
    if (value != expected) return config.refused(field, fmt::format("expected {}", expected));
    return ok_status();
  };
  RETURN_IF_ERROR(fixed("swiglu_alpha", 1.702));
  return fixed("swiglu_limit", 7.0);
}

// The same family under another name.
constexpr Family with_model_type(Family family, std::string_view model_type) {
  family.model_type = model_type;
  return family;
}

constexpr Family kGemma4 = {.model_type = "gemma4_text",
                            .architecture = "gemma4",
                            .names = kGemma4Names,
                            .rope_base = 1e6,
                            .context = 131072,
                            .tied = true,
                            .activation = "gelu_pytorch_tanh",
                            .activation_field = "hidden_activation",
                            .windows = WindowRule::kPattern,
                            .window = 512,
                            .window_pattern = 6,
                            .write_keys = write_gemma4};
constexpr Family kDeepseekV3 = {.model_type = "deepseek_v3",
                                .architecture = "deepseek2",
                                .names = kExpertNames,
                                .skips_later_layers = true,
                                .write_keys = write_deepseek};

constexpr auto kFamilies = std::to_array<Family>({
    {.model_type = "llama", .architecture = "llama", .names = kPreNorms, .half_split = true},
    {.model_type = "mistral",
     .architecture = "llama",
     .names = kPreNorms,
     .needs_kv_heads = true,
     .half_split = true,
     .windows = WindowRule::kAll,
     .window = 4096},
    {.model_type = "ministral3",
     .architecture = "mistral3",
     .names = kPreNorms,
     .norm_epsilon = 1e-5,
     .rope_base = 1e6,
     .head_dim = 128,
     .needs_kv_heads = true,
     .half_split = true,
     .windows = WindowRule::kAll},
    {.model_type = "qwen2",
     .architecture = "qwen2",
     .names = kPreNorms,
     .needs_kv_heads = true,
     .windows = WindowRule::kFromLayer,
     .window = 4096},
    {.model_type = "qwen3",
     .architecture = "qwen3",
     .names = kPreNorms,
     .head_dim = 128,
     .needs_kv_heads = true,
     .windows = WindowRule::kFromLayer,
     .window = 4096},
    {.model_type = "gemma2",
     .architecture = "gemma2",
     .names = kGemmaNames,
     .head_dim = 256,
     .needs_kv_heads = true,
     .tied = true,
     .norms_plus_one = true,
     .activation = "gelu_pytorch_tanh",
     .activation_field = "hidden_activation",
     .windows = WindowRule::kPattern,
     .window = 4096,
     .window_pattern = 2,
     .write_keys = write_gemma2},
    {.model_type = "gemma3_text",
     .architecture = "gemma3",
     .names = kGemmaNames,
     .rope_base = 1e6,
     .head_dim = 256,
     .heads = 8,
     .kv_heads = 4,
     .context = 131072,
     .tied = true,
     .norms_plus_one = true,
     .activation = "gelu_pytorch_tanh",
     .activation_field = "hidden_activation",
     .windows = WindowRule::kPattern,
     .window = 4096,
     .window_pattern = 6,
     .write_keys = write_gemma3},
    kGemma4,
    with_model_type(kGemma4, "gemma4_unified_text"),
    {.model_type = "phi3",
     .architecture = "phi3",
     .names = kFusedNames,
     .norm_epsilon = 1e-5,
     .windows = WindowRule::kAll},
    {.model_type = "granite",
     .architecture = "granite",
     .names = kPreNorms,
     .half_split = true,
     .write_keys = write_granite},
    {.model_type = "granitemoehybrid",
     .architecture = "granite",
     .names = kGraniteHybridNames,
     .half_split = true,
     .hidden_field = "shared_intermediate_size",
     .write_keys = write_granite_hybrid,
     .runs = is_dense_granite},
    {.model_type = "olmo2", .architecture = "olmo2", .names = kPostNorms, .norm_epsilon = 1e-5},
    {.model_type = "olmo3",
     .architecture = "olmo2",
     .names = kPostNorms,
     .norm_epsilon = 1e-5,
     .rope_base = 500000,
     .windows = WindowRule::kPattern,
     .window = 4096,
     .window_pattern = 4},
    {.model_type = "smollm3",
     .architecture = "smollm3",
     .names = kPreNorms,
     .rope_base = 2e6,
     .needs_kv_heads = true,
     .tied = true,
     .half_split = true,
     .windows = WindowRule::kFlagged,
     .write_keys = write_smollm3},
    {.model_type = "glm4",
     .architecture = "glm4",
     .names = kGlm4Names,
     .norm_epsilon = 1.5625e-7,
     .rotary_share = 0.5,
     .head_dim = 128,
     .needs_kv_heads = true},
    {.model_type = "exaone4",
     .architecture = "exaone4",
     .names = kPostNorms,
     .norm_epsilon = 1e-5,
     .needs_kv_heads = true,
     .windows = WindowRule::kPattern,
     .window = 4096,
     .window_pattern = 4},
    {.model_type = "mixtral",
     .architecture = "llama",
     .names = kMixtralNames,
     .norm_epsilon = 1e-5,
     .rope_base = 1e6,
     .needs_kv_heads = true,
     .half_split = true,
     .windows = WindowRule::kAll,
     .write_keys = write_mixtral},
    {.model_type = "granitemoe",
     .architecture = "granitemoe",
     .names = kGraniteMoeNames,
     .half_split = true,
     .write_keys = write_granitemoe},
    {.model_type = "granitemoeshared",
     .architecture = "granitemoe",
     .names = kGraniteMoeNames,
     .half_split = true,
     .write_keys = write_granitemoe},
    {.model_type = "qwen2_moe",
     .architecture = "qwen2moe",
     .names = kExpertNames,
     .needs_kv_heads = true,
     .windows = WindowRule::kFlagged,
     .window = 4096,
     .write_keys = write_qwen_moe},
    {.model_type = "qwen3_moe",
     .architecture = "qwen3moe",
     .names = kExpertNames,
     .needs_kv_heads = true,
     .windows = WindowRule::kFlagged,
     .window = 4096,
     .write_keys = write_qwen_moe},
    {.model_type = "gpt_oss",
     .architecture = "gpt-oss",
     .names = kGptOssNames,
     .norm_epsilon = 1e-5,
     .rope_base = 150000,
     .head_dim = 64,
     .needs_kv_heads = true,
     .windows = WindowRule::kPattern,
     .window = 128,
     .window_pattern = 2,
     .write_keys = write_gpt_oss},
    {.model_type = "deepseek_v2",
     .architecture = "deepseek2",
     .names = kExpertNames,
     .write_keys = write_deepseek},
    kDeepseekV3,
    with_model_type(kDeepseekV3, "kimi_k2"),
    {.model_type = "glm4_moe_lite",
     .architecture = "deepseek2",
     .names = kExpertNames,
     .norm_epsilon = 1e-5,
     .skips_later_layers = true,
     .write_keys = write_deepseek},
});

// Models with layers that keep a recurrent state instead of keys and values.
constexpr auto kRecurrent = std::to_array<std::string_view>(
    {"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen3_5_text", "qwen3_5_moe_text", "granitemoehybrid",
     "lfm2", "lfm2_moe", "falcon_h1", "nemotron_h", "jamba", "bamba", "zamba2", "mamba", "mamba2",
     "kimi_linear", "olmo_hybrid"});

}  // namespace

std::span<const Family> families() { return kFamilies; }

Result<const Family*> find_family(const JsonFields& config) {
  ASSIGN_OR_RETURN(const std::string type, config.text_or("model_type", ""));
  if (type.empty()) return config.missing("model_type");
  const auto* const found = std::find_if(kFamilies.begin(), kFamilies.end(),
                                         [&](const Family& row) { return row.model_type == type; });
  const bool is_listed = found != kFamilies.end();
  if (is_listed && (found->runs == nullptr || found->runs(config))) return found;
  std::string names;
  for (const Family& family : kFamilies) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family.model_type);
  }
  const bool recurrent = std::find(kRecurrent.begin(), kRecurrent.end(), type) != kRecurrent.end();
  return config.refused(
      "model_type", fmt::format("which is not supported{}; folders may be of: {}",
                                recurrent ? " (recurrent state is not cached yet)" : "", names));
}

}  // namespace pagoda::hf
