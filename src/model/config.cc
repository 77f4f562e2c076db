#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>

#include "base/elementary.h"
#include "model/architectures/architecture.h"
#include "model/config_reader.h"

namespace pagoda::model {
namespace {

Status read_longrope(const ConfigReader& reader, RopeConfig& rope) {
  rope.scaling = RopeScaling::kLongRope;
  ASSIGN_OR_RETURN(rope.original_context,
                   reader.count("rope.scaling.original_context_length", kContextMax));
  ASSIGN_OR_RETURN(rope.attention_factor, reader.positive_or("rope.scaling.attn_factor", 1.0));
  return ok_status();
}

Status read_rope_scaling(const ConfigReader& reader, RopeConfig& rope) {
  // Old files state a linear factor by another key, or without a type; 0 is no factor.
  ASSIGN_OR_RETURN(const double old_factor,
                   reader.metadata().number_or(reader.key("rope.scale_linear"), 0));
  ASSIGN_OR_RETURN(const double factor,
                   reader.metadata().number_or(reader.key("rope.scaling.factor"), old_factor));
  const bool scaled = factor != 0 && factor != 1;
  ASSIGN_OR_RETURN(
      const std::string_view type,
      reader.metadata().text_or(reader.key("rope.scaling.type"), scaled ? "linear" : "none"));
  if (type == "none") return ok_status();
  if (type == "longrope") return read_longrope(reader, rope);
  if (factor != 0) {
    ASSIGN_OR_RETURN(rope.factor, reader.positive_or("rope.scaling.factor", factor));
  }
  if (type == "linear") {
    rope.scaling = RopeScaling::kLinear;
    return ok_status();
  }
  if (type != "yarn") {
    return reader.out_of_range("rope.scaling.type", fmt::format("'{}'", type),
                               "none, linear, yarn or longrope");
  }
  rope.scaling = RopeScaling::kYarn;
  ASSIGN_OR_RETURN(rope.original_context,
                   reader.count("rope.scaling.original_context_length", kContextMax));
  ASSIGN_OR_RETURN(const double given, reader.positive_or("rope.scaling.attn_factor", 1.0));
  // A multiplier takes back, from cosines and sines, what the model has in its scores.
  ASSIGN_OR_RETURN(const float multiplier, reader.scale_or("rope.scaling.yarn_log_multiplier", 0));
  const auto magnitude = [&](double share) {
    return 1.0 + 0.1 * share * natural_log(std::max(rope.factor, 1.0));
  };
  const double computed = given * magnitude(1.0) / magnitude(multiplier);
  ASSIGN_OR_RETURN(rope.attention_factor,
                   reader.positive_or("rope.scaling.yarn_attn_factor", computed));
  ASSIGN_OR_RETURN(rope.yarn_beta_fast, reader.positive_or("rope.scaling.yarn_beta_fast", 32.0));
  ASSIGN_OR_RETURN(rope.yarn_beta_slow, reader.positive_or("rope.scaling.yarn_beta_slow", 1.0));
  return ok_status();
}

// The rotation that the file's own keys describe; what an architecture changes comes after.
Status read_rope(const ConfigReader& reader, Config& config) {
  RopeConfig rope;
  ASSIGN_OR_RETURN(rope.dims, reader.rope_dims("rope.dimension_count", config.key_dim));
  ASSIGN_OR_RETURN(rope.base, reader.positive_or("rope.freq_base", 10000.0));
  ASSIGN_OR_RETURN(const bool half_split,
                   reader.metadata().flag_or("pagoda.rope.half_split", false));
  if (half_split) rope.pairing = kernels::RopePairing::kHalfSplit;
  RETURN_IF_ERROR(read_rope_scaling(reader, rope));
  config.ropes = {rope};
  return ok_status();
}

Result<std::uint32_t> read_vocabulary(const gguf::File& file) {
  const gguf::Tensor* const embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: no tensor 'token_embd.weight': this file holds no model weights",
                             file.path())};
  }
  const std::uint64_t rows = embedding->rows();
  if (rows < 1 || rows > std::numeric_limits<std::int32_t>::max()) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("{}: tensor 'token_embd.weight' has {} rows, expected 1 to 2^31 - 1",
                             file.path(), rows)};
  }
  return static_cast<std::uint32_t>(rows);
}

// A file with such a key asks for an operation that the decoder lacks: its logits would be wrong.
struct MissingOperation {
  std::string_view key;
  std::string_view name;
};
constexpr auto kMissing = std::to_array<MissingOperation>({
    {"interleave_moe_layer_step", "experts in some layers"},
    {"moe_every_n_layers", "experts in some layers"},
    {"attention.clamp_kqv", "clamped queries, keys and values"},
});

Status refuse_missing_operations(const ConfigReader& reader) {
  ASSIGN_OR_RETURN(const bool causal,
                   reader.metadata().flag_or(reader.key("attention.causal"), true));
  if (!causal) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: attention that sees later tokens is not supported",
                             reader.metadata().source())};
  }
  if (reader.contains("rope.dimension_sections")) {
    ASSIGN_OR_RETURN(const std::vector<std::int64_t> sections,
                     reader.metadata().integers(reader.key("rope.dimension_sections")));
    if (std::any_of(sections.begin(), sections.end(), [](auto size) { return size != 0; })) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}: rotations in sections (M-RoPE) are not supported",
                               reader.metadata().source())};
    }
  }
  for (const MissingOperation& missing : kMissing) {
    ASSIGN_OR_RETURN(const double value, reader.metadata().number_or(reader.key(missing.key), 0));
    if (value == 0) continue;
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: {} are not supported ({} is {})", reader.metadata().source(),
                             missing.name, reader.key(missing.key), value)};
  }
  return ok_status();
}

// Blocks that predict more tokens are the last ones; they are left out.
Status read_layers(const ConfigReader& reader, Config& config) {
  ASSIGN_OR_RETURN(const std::uint32_t blocks, reader.count("block_count", kLayersMax));
  ASSIGN_OR_RETURN(const std::uint64_t more,
                   reader.metadata().unsigned_value_or(reader.key("nextn_predict_layers"), 0));
  if (more >= blocks) {
    return reader.out_of_range("nextn_predict_layers", fmt::format("{}", more),
                               fmt::format("fewer than the {} blocks", blocks));
  }
  config.left_out_layers = static_cast<std::uint32_t>(more);
  config.layers = blocks - config.left_out_layers;
  return ok_status();
}

Status check_kv_heads(const ConfigReader& reader, std::span<const std::uint32_t> kv_heads,
                      const Config& config) {
  for (std::uint32_t layer = 0; layer < config.layers && config.latent.rank == 0; ++layer) {
    if (config.heads_of(layer).kv_heads != kv_heads[layer]) {
      return reader.differs_between_layers("attention.head_count_kv");
    }
  }
  return ok_status();
}

}  // namespace

Result<Config> read_config(const gguf::File& file) {
  ASSIGN_OR_RETURN(const std::string_view name, file.metadata().text("general.architecture"));
  ASSIGN_OR_RETURN(const Architecture* const architecture, find_architecture(name, file.path()));
  const ConfigReader reader(file.metadata(), std::string(name));
  RETURN_IF_ERROR(refuse_missing_operations(reader));
  Config config;
  config.architecture = name;
  config.is_folder = file.version() == 0;
  ASSIGN_OR_RETURN(config.overrides, file.metadata().text_or("pagoda.overrides", ""));
  ASSIGN_OR_RETURN(config.vocabulary, read_vocabulary(file));
  RETURN_IF_ERROR(read_layers(reader, config));
  ASSIGN_OR_RETURN(config.width, reader.count("embedding_length", kWidthMax));
  ASSIGN_OR_RETURN(config.context, reader.count("context_length", kContextMax));
  ASSIGN_OR_RETURN(config.hidden_width,
                   reader.count_for_all_layers("feed_forward_length", 0, kWidthMax));
  ASSIGN_OR_RETURN(config.heads, reader.count_for_all_layers("attention.head_count", 0, kHeadsMax));
  ASSIGN_OR_RETURN(
      const std::vector<std::uint32_t> kv_heads,
      reader.count_by_layer("attention.head_count_kv", config.heads, config.heads, config.layers));
  config.kv_heads = kv_heads.front();
  if (config.heads % config.kv_heads != 0) {
    return reader.out_of_range("attention.head_count_kv", fmt::format("{}", config.kv_heads),
                               fmt::format("a divisor of the {} query heads", config.heads));
  }
  const std::uint32_t head_dim = config.width / config.heads;
  ASSIGN_OR_RETURN(config.key_dim, reader.count_or("attention.key_length", head_dim, kHeadDimMax));
  ASSIGN_OR_RETURN(config.value_dim,
                   reader.count_or("attention.value_length", head_dim, kHeadDimMax));
  constexpr std::string_view kEpsilon = "attention.layer_norm_rms_epsilon";
  RETURN_IF_ERROR(reader.require(kEpsilon));
  ASSIGN_OR_RETURN(const double epsilon, reader.positive_or(kEpsilon, 1e-5));
  config.norm_epsilon = static_cast<float>(epsilon);
  config.attention.assign(config.layers, {});
  ASSIGN_OR_RETURN(const float scale, reader.scale_or("attention.scale", 0));
  if (scale != 0) config.attention_scale = scale;
  ASSIGN_OR_RETURN(config.score_cap, reader.scale_or("attn_logit_softcapping", 0));
  ASSIGN_OR_RETURN(config.logit_cap, reader.scale_or("final_logit_softcapping", 0));
  RETURN_IF_ERROR(read_rope(reader, config));
  // Files of Phi 3 do not name their scaling.
  const bool has_factors = file.find_tensor(kShortFactors) != nullptr;
  if (has_factors && config.ropes.front().scaling == RopeScaling::kNone &&
      !replaces_scaling(file.metadata())) {
    RETURN_IF_ERROR(read_longrope(reader, config.ropes.front()));
  }
  RETURN_IF_ERROR(architecture->describe(reader, config));
  RETURN_IF_ERROR(check_kv_heads(reader, kv_heads, config));
  ASSIGN_OR_RETURN(const float slope, reader.scale_or("attention.temperature_scale", 0));
  if (slope != 0 && !config.query_scale) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: queries scaled by position are not supported in '{}' files",
                             file.path(), name)};
  }
  ASSIGN_OR_RETURN(const double local_base,
                   reader.positive_or("rope.freq_base_swa", config.ropes.front().base));
  if (reader.contains("rope.freq_base_swa") && has_window(reader) &&
      local_base != config.ropes.back().base) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: a rope base of layers with a window ({} is {}) is not supported "
                             "in '{}' files",
                             file.path(), reader.key("rope.freq_base_swa"), local_base, name)};
  }
  if (has_experts(reader) && config.experts.router.experts == 0) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("{}: mixtures of experts are not supported in '{}' files", file.path(), name)};
  }
  serve_context(config.context, config);
  return config;
}

void serve_context(std::uint64_t tokens, Config& config) {
  for (RopeConfig& rope : config.ropes) {
    rope.has_long_factors =
        rope.scaling == RopeScaling::kLongRope && tokens > rope.original_context;
  }
}

}  // namespace pagoda::model
