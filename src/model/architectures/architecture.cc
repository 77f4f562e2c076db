#include "model/architectures/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace pagoda::model {
namespace {

constexpr auto kArchitectures = std::to_array<Architecture>({
    {"exaone4", describe_exaone4},
    {"gemma3", describe_gemma3},
    {"glm4", describe_glm4},
    {"granite", describe_granite},
    {"llama", describe_llama},
    {"olmo2", describe_olmo2},
    {"phi3", describe_phi3},
    {"qwen2", describe_qwen2},
    {"qwen3", describe_qwen3},
    {"smollm3", describe_smollm3},
});

// Hybrids of attention and layers with a recurrent state.
constexpr std::array<std::string_view, 6> kHybrids = {"granitehybrid", "lfm2",      "lfm2moe",
                                                      "qwen35",        "qwen35moe", "qwen3next"};

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
