#include "hf/deepseek_keys.h"

#include <algorithm>
#include <string>
#include <vector>

#include "hf/expert_keys.h"

namespace pagoda::hf {
namespace {

// The layers before the first with experts: a number, or a word for each layer.
Result<std::uint64_t> dense_layers(const JsonFields& config) {
  constexpr const char* kTypes = "mlp_layer_types";
  if (!config.has(kTypes)) return config.count_or("first_k_dense_replace", 0);
  ASSIGN_OR_RETURN(const std::vector<std::string> types, config.texts(kTypes));
  const auto first = std::find(types.begin(), types.end(), "sparse");
  const bool is_good = std::all_of(types.begin(), first, [](auto& t) { return t == "dense"; }) &&
                       std::all_of(first, types.end(), [](auto& t) { return t == "sparse"; });
  if (!is_good) return config.refused(kTypes, "expected dense layers, then sparse ones");
  return static_cast<std::uint64_t>(first - types.begin());
}

}  // namespace

Status write_deepseek(const JsonFields& config, const KeyWriter& keys) {
  RETURN_IF_ERROR(write_experts(config, keys, "n_routed_experts"));
  const auto copy = [&](const char* field, const char* key, std::uint64_t fallback) -> Status {
    ASSIGN_OR_RETURN(const std::uint64_t value, config.count_or(field, fallback));
    if (value != 0) keys.count(key, value);
    return ok_status();
  };
  RETURN_IF_ERROR(copy("kv_lora_rank", "attention.kv_lora_rank", 512));
  RETURN_IF_ERROR(copy("q_lora_rank", "attention.q_lora_rank", 0));
  ASSIGN_OR_RETURN(const std::uint64_t dense, dense_layers(config));
  if (dense != 0) keys.count("leading_dense_block_count", dense);
  RETURN_IF_ERROR(copy("n_shared_experts", "expert_shared_count", 0));
  RETURN_IF_ERROR(copy("moe_intermediate_size", "expert_feed_forward_length", 0));
  ASSIGN_OR_RETURN(const std::string type, config.text_or("model_type", ""));
  const bool v3 = type != "deepseek_v2";
  const bool glm = type == "glm4_moe_lite";
  // Version 2 has groups only where its method says so.
  ASSIGN_OR_RETURN(const std::string method, config.text_or("topk_method", v3 ? "" : "greedy"));
  if (!v3 && method != "greedy" && method != "group_limited_greedy") {
    return config.refused("topk_method", "expected greedy or group_limited_greedy");
  }
  if (v3 || method == "group_limited_greedy") {
    RETURN_IF_ERROR(copy("n_group", "expert_group_count", !v3 ? 0 : glm ? 1 : 8));
    RETURN_IF_ERROR(copy("topk_group", "expert_group_used_count", !v3 ? 0 : glm ? 1 : 4));
  }
  ASSIGN_OR_RETURN(const double scale, config.number_or("routed_scaling_factor", !v3   ? 1.0
                                                                                 : glm ? 1.8
                                                                                       : 2.5));
  keys.number("expert_weights_scale", scale);
  ASSIGN_OR_RETURN(const bool normed, config.flag_or("norm_topk_prob", v3));
  keys.flag("expert_weights_norm", normed);
  ASSIGN_OR_RETURN(const std::string scoring,
                   config.text_or("scoring_func", v3 ? "sigmoid" : "softmax"));
  if (scoring != "sigmoid" && scoring != "softmax") {
    return config.refused("scoring_func", "expected softmax or sigmoid");
  }
  keys.count("expert_gating_func", scoring == "sigmoid" ? 2 : 1);
  ASSIGN_OR_RETURN(const bool adjacent, config.flag_or("rope_interleave", true));
  if (!adjacent) keys.builder().set_flag("pagoda.rope.half_split", true);
  return ok_status();
}

}  // namespace pagoda::hf
