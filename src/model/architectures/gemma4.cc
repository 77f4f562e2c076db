// Gemma 4 (text; 12B, 31B, 26B-A4B): Gemma 3 with larger heads in layers that see all keys, of
// which a part of each rotates; values are normed, and may be keys; a dense network beside experts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/architectures/architecture.h"

namespace pagoda::model {
namespace {

Status refuse_layer_embeddings(const ConfigReader& reader) {
  constexpr std::string_view kKey = "embedding_length_per_layer_input";
  ASSIGN_OR_RETURN(const std::uint64_t width,
                   reader.metadata().unsigned_value_or(reader.key(kKey), 0));
  if (width == 0) return ok_status();
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: embeddings of layers (Gemma 4 E2B and E4B) are not supported ({} "
                           "is {})",
                           reader.metadata().source(), reader.key(kKey), width)};
}

// Keys without a suffix are those of layers that see all keys. The windows must be known.
Status read_heads(const ConfigReader& reader, Config& config) {
  ASSIGN_OR_RETURN(
      const std::vector<std::uint32_t> kv_heads,
      reader.count_by_layer("attention.head_count_kv", config.heads, config.heads, config.layers));
  HeadShape full = {0, config.key_dim, config.value_dim};
  ASSIGN_OR_RETURN(config.key_dim,
                   reader.count_or("attention.key_length_swa", config.key_dim, kHeadDimMax));
  ASSIGN_OR_RETURN(config.value_dim,
                   reader.count_or("attention.value_length_swa", config.value_dim, kHeadDimMax));
  for (std::uint32_t layer = config.layers; layer-- > 0;) {
    (config.attention[layer].window == 0 ? full.kv_heads : config.kv_heads) = kv_heads[layer];
  }
  if (full.kv_heads > 0) config.full_heads = full;
  if (full.key_dim != full.value_dim || config.key_dim != config.value_dim) {
    return reader.out_of_range("attention.value_length", fmt::format("{}", full.value_dim),
                               "as long as keys, of both kinds of layers");
  }
  if (config.heads % config.kv_heads != 0 || (full.kv_heads > 0 && config.heads % full.kv_heads)) {
    return reader.out_of_range("attention.head_count_kv",
                               fmt::format("{} and {}", config.kv_heads, full.kv_heads),
                               fmt::format("divisors of the {} query heads", config.heads));
  }
  return ok_status();
}

// The last layers attend to the rows of an earlier one of their kind.
Status read_shared_layers(const ConfigReader& reader, Config& config) {
  constexpr std::string_view kKey = "attention.shared_kv_layers";
  ASSIGN_OR_RETURN(const std::uint64_t shared,
                   reader.metadata().unsigned_value_or(reader.key(kKey), 0));
  const auto is_kept = [&](std::uint32_t window) {
    const auto end = config.attention.end() - static_cast<std::ptrdiff_t>(shared);
    return std::any_of(config.attention.begin(), end,
                       [&](const auto& spec) { return spec.window == window; });
  };
  for (std::uint64_t i = 0; i < shared; ++i) {
    if (shared >= config.layers || !is_kept(config.attention[config.layers - 1 - i].window)) {
      return reader.out_of_range(kKey, fmt::format("{}", shared),
                                 "fewer than leave a layer of each kind that keeps its rows");
    }
  }
  config.shared_kv_layers = static_cast<std::uint32_t>(shared);
  return ok_status();
}

}  // namespace

Status describe_gemma4(const ConfigReader& reader, Config& config) {
  RETURN_IF_ERROR(refuse_layer_embeddings(reader));
  rotate_halves(config);
  config.branch_norms = BranchNorms::kBoth;
  config.qk_norm = QkNormSpan::kHead;
  config.normalises_values = true;
  config.has_output_scales = true;
  constexpr std::string_view kKeysAreValues = "pagoda.attention.keys_are_values";
  config.keys_are_values.reset();
  if (reader.metadata().contains(kKeysAreValues)) {
    ASSIGN_OR_RETURN(config.keys_are_values, reader.metadata().flag_or(kKeysAreValues, false));
  }
  config.gate = GateKind::kGeGlu;
  config.embedding_scale = std::sqrt(static_cast<float>(config.width));
  config.attention_scale = 1.0f;
  RETURN_IF_ERROR(read_windows(reader, 6, config));
  RETURN_IF_ERROR(read_heads(reader, config));
  RETURN_IF_ERROR(read_shared_layers(reader, config));
  config.ropes.front().needs_divisors = true;
  RopeConfig local = {.pairing = kernels::RopePairing::kHalfSplit};
  ASSIGN_OR_RETURN(local.dims, reader.rope_dims("rope.dimension_count_swa", config.key_dim));
  ASSIGN_OR_RETURN(local.base, reader.positive_or("rope.freq_base_swa", 10000.0));
  config.ropes.push_back(local);
  choose_ropes({.full = 0, .windowed = 1}, config);
  if (!has_experts(reader)) return ok_status();
  RETURN_IF_ERROR(read_experts(reader, {.is_normalised = true}, config));
  config.experts.has_own_norms = true;
  config.experts.shared_width = config.hidden_width;
  return ok_status();
}

}  // namespace pagoda::model
