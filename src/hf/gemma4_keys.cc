#include "hf/gemma4_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace pagoda::hf {
namespace {

constexpr std::uint64_t kGlobalHeadDim = 512;

// All layers that it names must have the same heads; those it does not name have `other`.
Status read_layers(const JsonFields& layers, Gemma4Heads& heads) {
  for (const auto& [layer, value] : layers.json().items()) {
    ASSIGN_OR_RETURN(const JsonFields one,
                     JsonFields::of(value, fmt::format("{}{}.", layers.place(), layer)));
    ASSIGN_OR_RETURN(const std::uint64_t dim, one.count_or("head_dim", heads.dim));
    ASSIGN_OR_RETURN(const std::uint64_t kv_heads,
                     one.count_or("num_key_value_heads", heads.kv_heads));
    for (const auto& [name, ignored] : value.items()) {
      if (name == "head_dim" || name == "num_key_value_heads") continue;
      return one.refused(name, "which this version does not know");
    }
    const bool is_first = heads.full_dim == 0;
    if (!is_first && (dim != heads.full_dim || kv_heads != heads.full_kv_heads)) {
      return one.refused("head_dim", "expected the same heads in all layers that see all keys");
    }
    heads.full_dim = dim;
    heads.full_kv_heads = kv_heads;
  }
  return ok_status();
}

Result<std::vector<bool>> full_layers(const JsonFields& config) {
  if (!config.has("layer_types")) return config.missing("layer_types");
  ASSIGN_OR_RETURN(const std::vector<std::string> types, config.texts("layer_types"));
  std::vector<bool> full;
  for (const std::string& type : types) full.push_back(type == "full_attention");
  return full;
}

// Layers that per_layer_config names are those that see all keys.
Status check_layers(const JsonFields& config, const std::vector<bool>& full) {
  ASSIGN_OR_RETURN(const auto layers, config.object("per_layer_config"));
  if (!layers) return ok_status();
  for (std::size_t layer = 0; layer < full.size(); ++layer) {
    if (layers->has(std::to_string(layer)) == full[layer]) continue;
    return config.refused("per_layer_config",
                          "expected all layers that see all keys, and no other");
  }
  return ok_status();
}

Status write_gemma4_experts(const JsonFields& config, const KeyWriter& keys) {
  ASSIGN_OR_RETURN(const bool mixed, config.flag_or("enable_moe_block", false));
  if (!mixed) return ok_status();
  ASSIGN_OR_RETURN(const std::uint64_t experts, config.count("num_experts"));
  ASSIGN_OR_RETURN(const std::uint64_t used, config.count("top_k_experts"));
  ASSIGN_OR_RETURN(const std::uint64_t hidden, config.count("moe_intermediate_size"));
  keys.count("expert_count", experts);
  keys.count("expert_used_count", used);
  keys.count("expert_feed_forward_length", hidden);
  return ok_status();
}

}  // namespace

Result<Gemma4Heads> read_gemma4_heads(const JsonFields& config) {
  Gemma4Heads heads;
  ASSIGN_OR_RETURN(heads.dim, config.count_or("head_dim", 256));
  ASSIGN_OR_RETURN(heads.kv_heads, config.count("num_key_value_heads"));
  ASSIGN_OR_RETURN(const auto layers, config.object("per_layer_config"));
  if (layers && !layers->json().empty()) {
    RETURN_IF_ERROR(read_layers(*layers, heads));
    return heads;
  }
  ASSIGN_OR_RETURN(heads.full_dim, config.count_or("global_head_dim", kGlobalHeadDim));
  ASSIGN_OR_RETURN(const bool shares, config.flag_or("attention_k_eq_v", false));
  heads.full_kv_heads = heads.kv_heads;
  if (shares) {
    ASSIGN_OR_RETURN(heads.full_kv_heads,
                     config.count_or("num_global_key_value_heads", heads.kv_heads));
  }
  return heads;
}

Status write_gemma4(const JsonFields& config, const KeyWriter& keys) {
  // "vision" is about tokens of images alone.
  ASSIGN_OR_RETURN(const std::string later,
                   config.text_or("use_bidirectional_attention", "vision"));
  if (later != "vision") {
    return config.refused("use_bidirectional_attention",
                          "attention that sees later tokens is not supported");
  }
  ASSIGN_OR_RETURN(const std::string type, config.text_or("model_type", ""));
  const bool has_default = type == "gemma4_text" && !config.contains("hidden_size_per_layer_input");
  ASSIGN_OR_RETURN(const std::uint64_t embeddings,
                   config.count_or("hidden_size_per_layer_input", has_default ? 256 : 0));
  if (embeddings != 0) {
    return config.refused("hidden_size_per_layer_input",
                          "embeddings of layers (Gemma 4 E2B and E4B) are not supported");
  }
  ASSIGN_OR_RETURN(const Gemma4Heads heads, read_gemma4_heads(config));
  ASSIGN_OR_RETURN(const std::vector<bool> full, full_layers(config));
  RETURN_IF_ERROR(check_layers(config, full));
  constexpr std::uint64_t kHeadsMax = 4096;
  if (std::max(heads.kv_heads, heads.full_kv_heads) > kHeadsMax) {
    return config.refused("num_key_value_heads", fmt::format("expected at most {}", kHeadsMax));
  }
  std::vector<std::int32_t> kv_heads;
  for (const bool is_full : full) {
    kv_heads.push_back(static_cast<std::int32_t>(is_full ? heads.full_kv_heads : heads.kv_heads));
  }
  ASSIGN_OR_RETURN(const bool keys_are_values, config.flag_or("attention_k_eq_v", false));
  keys.builder().set_flag("pagoda.attention.keys_are_values", keys_are_values);
  keys.integers("attention.head_count_kv", kv_heads);
  keys.count("attention.key_length_swa", heads.dim);
  keys.count("attention.value_length_swa", heads.dim);
  keys.count("rope.dimension_count_swa", heads.dim);
  ASSIGN_OR_RETURN(const std::uint64_t shared, config.count_or("num_kv_shared_layers", 0));
  if (shared != 0) keys.count("attention.shared_kv_layers", shared);
  ASSIGN_OR_RETURN(const bool wide, config.flag_or("use_double_wide_mlp", false));
  if (wide && shared != 0) {
    return config.refused("use_double_wide_mlp", "layers of two widths are not supported");
  }
  if (config.has("final_logit_softcapping")) {
    ASSIGN_OR_RETURN(const double cap, config.number("final_logit_softcapping"));
    keys.number("final_logit_softcapping", cap);
  }
  return write_gemma4_experts(config, keys);
}

}  // namespace pagoda::hf
