#include "model/architectures/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace pagoda::model {
namespace {

constexpr auto kArchitectures = std::to_array<Architecture>({
    {"deepseek2", describe_deepseek2},
    {"exaone4", describe_exaone4},
    {"gemma2", describe_gemma2},
    {"gemma3", describe_gemma3},
    {"gemma4", describe_gemma4},
    {"glm4", describe_glm4},
    {"gpt-oss", describe_gpt_oss},
    {"granite", describe_granite},
    {"granitemoe", describe_granitemoe},
    {"llama", describe_llama},
    {"mistral3", describe_mistral3},
    {"olmo2", describe_olmo2},
    {"phi3", describe_phi3},
    {"qwen2", describe_qwen2},
    {"qwen2moe", describe_qwen2moe},
    {"qwen3", describe_qwen3},
    {"qwen3moe", describe_qwen3moe},
    {"smollm3", describe_smollm3},
});

// Hybrids of attention and layers with a recurrent state.
constexpr std::array<std::string_view, 6> kHybrids = {"granitehybrid", "lfm2",      "lfm2moe",
                                                      "qwen35",        "qwen35moe", "qwen3next"};

Status read_router_score(const ConfigReader& reader, kernels::Router& router) {
  constexpr std::string_view kKey = "expert_gating_func";
  constexpr kernels::RouterScore kScores[] = {kernels::RouterScore::kSoftmax,
                                              kernels::RouterScore::kSigmoid,
                                              kernels::RouterScore::kSoftmaxOfChosen};
  ASSIGN_OR_RETURN(const std::uint64_t given,
                   reader.metadata().unsigned_value_or(reader.key(kKey), 0));
  if (given == 0) return ok_status();  // none is given
  if (given > std::size(kScores)) {
    return reader.out_of_range(kKey, fmt::format("{}", given),
                               "1 (softmax), 2 (sigmoid) or 3 (softmax of the chosen)");
  }
  router.score = kScores[given - 1];
  return ok_status();
}

Status read_expert_groups(const ConfigReader& reader, kernels::Router& router) {
  ASSIGN_OR_RETURN(const std::uint64_t groups,
                   reader.metadata().unsigned_value_or(reader.key("expert_group_count"), 1));
  ASSIGN_OR_RETURN(const std::uint64_t used, reader.metadata().unsigned_value_or(
                                                 reader.key("expert_group_used_count"), groups));
  if (groups <= 1) return ok_status();
  const bool fits = router.experts % groups == 0 && used >= 1 && used <= groups &&
                    router.experts / groups * used >= router.chosen;
  if (!fits) {
    return reader.out_of_range("expert_group_count", fmt::format("{} ({} used)", groups, used),
                               fmt::format("a divisor of the {} experts, with room for the {} that "
                                           "are chosen",
                                           router.experts, router.chosen));
  }
  router.groups = static_cast<std::uint32_t>(groups);
  router.groups_chosen = static_cast<std::uint32_t>(used);
  return ok_status();
}

}  // namespace

Result<const Architecture*> find_architecture(std::string_view name, std::string_view path) {
  const auto* const found =
      std::find_if(kArchitectures.begin(), kArchitectures.end(),
                   [&](const Architecture& architecture) { return architecture.name == name; });
  if (found != kArchitectures.end()) return found;
  std::string names;
  for (const Architecture& architecture : kArchitectures) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", architecture.name);
  }
  const bool hybrid = std::find(kHybrids.begin(), kHybrids.end(), name) != kHybrids.end();
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: architecture '{}' is not supported{}; this version runs: {}", path,
                           name, hybrid ? " (recurrent state is not cached yet)" : "", names)};
}

bool has_window(const ConfigReader& reader) {
  const auto given = reader.metadata().unsigned_value_or(reader.key("attention.sliding_window"), 0);
  return !given.ok() || given.value() != 0;  // a wrong type is an error of who reads it
}

void choose_ropes(const RopesByWindow& ropes, Config& config) {
  config.rope_of_layer.clear();
  for (const kv::memory::AttentionSpec& spec : config.attention) {
    config.rope_of_layer.push_back(spec.window == 0 ? ropes.full : ropes.windowed);
  }
}

void rotate_halves(Config& config) {
  for (RopeConfig& rope : config.ropes) rope.pairing = kernels::RopePairing::kHalfSplit;
}

bool has_experts(const ConfigReader& reader) {
  const auto given = reader.metadata().unsigned_value_or(reader.key("expert_count"), 0);
  return !given.ok() || given.value() != 0;  // a wrong type is an error of who reads it
}

Status read_experts(const ConfigReader& reader, kernels::Router router, Config& config) {
  const gguf::Metadata& metadata = reader.metadata();
  ASSIGN_OR_RETURN(router.experts, reader.count("expert_count", kExpertsMax));
  ASSIGN_OR_RETURN(router.chosen, reader.count("expert_used_count", router.experts));
  ASSIGN_OR_RETURN(config.experts.hidden_width,
                   reader.count_or("expert_feed_forward_length", config.hidden_width, kWidthMax));
  ASSIGN_OR_RETURN(const std::uint64_t dense,
                   metadata.unsigned_value_or(reader.key("leading_dense_block_count"), 0));
  if (dense > config.layers) {
    return reader.out_of_range("leading_dense_block_count", fmt::format("{}", dense),
                               fmt::format("at most the {} layers", config.layers));
  }
  config.experts.first_layer = static_cast<std::uint32_t>(dense);
  // The shared expert's width, or how many of an expert's width it is made of.
  ASSIGN_OR_RETURN(const std::uint64_t shared_count,
                   metadata.unsigned_value_or(reader.key("expert_shared_count"), 0));
  ASSIGN_OR_RETURN(const std::uint64_t shared,
                   metadata.unsigned_value_or(
                       reader.key("expert_shared_feed_forward_length"),
                       std::min(shared_count, kExpertsMax) * config.experts.hidden_width));
  if (shared > kWidthMax || shared_count > kExpertsMax) {
    return reader.out_of_range("expert_shared_feed_forward_length", fmt::format("{}", shared),
                               fmt::format("at most {}", kWidthMax));
  }
  config.experts.shared_width = static_cast<std::uint32_t>(shared);
  ASSIGN_OR_RETURN(router.is_normalised,
                   metadata.flag_or(reader.key("expert_weights_norm"), router.is_normalised));
  ASSIGN_OR_RETURN(router.weight_scale,
                   reader.scale_or("expert_weights_scale", router.weight_scale));
  RETURN_IF_ERROR(read_router_score(reader, router));
  RETURN_IF_ERROR(read_expert_groups(reader, router));
  config.experts.router = router;
  return ok_status();
}

Status read_windows(const ConfigReader& reader, std::uint32_t pattern, Config& config) {
  if (!has_window(reader)) return ok_status();
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  ASSIGN_OR_RETURN(const std::uint32_t window,
                   reader.count("attention.sliding_window", kContextMax));
  const gguf::MetadataValue* const value = reader.metadata().find(reader.key(kPattern));
  if (value != nullptr && value->type == gguf::ValueType::kArray) {
    ASSIGN_OR_RETURN(const std::vector<bool> flags, reader.metadata().flags(reader.key(kPattern)));
    if (flags.size() < config.layers) {
      return reader.out_of_range(kPattern, fmt::format("{} values", flags.size()),
                                 fmt::format("one for each of the {} layers", config.layers));
    }
    for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
      if (flags[layer]) config.attention[layer].window = window;
    }
    return ok_status();
  }
  ASSIGN_OR_RETURN(const std::uint32_t period, reader.count_or(kPattern, pattern, kLayersMax));
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if ((layer + 1) % period != 0) config.attention[layer].window = window;
  }
  return ok_status();
}

}  // namespace pagoda::model
