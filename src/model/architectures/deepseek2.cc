// DeepSeek V2, V3 and R1, Kimi K2, GLM 4.7 Flash: latent attention, and experts behind some dense
// layers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/elementary.h"
#include "model/architectures/architecture.h"

namespace pagoda::model {
namespace {

// The row of a token's latent and key, and what heads make of it. Files state the sizes of heads,
// or those of the row and, under names of their own, those of heads.
Status read_latents(const ConfigReader& reader, Config& config) {
  LatentConfig& latent = config.latent;
  ASSIGN_OR_RETURN(latent.rank, reader.count("attention.kv_lora_rank", kWidthMax));
  ASSIGN_OR_RETURN(const std::uint64_t query_rank,
                   reader.metadata().unsigned_value_or(reader.key("attention.q_lora_rank"), 0));
  if (query_rank > kWidthMax) {
    return reader.out_of_range("attention.q_lora_rank", fmt::format("{}", query_rank),
                               fmt::format("at most {}", kWidthMax));
  }
  latent.query_rank = static_cast<std::uint32_t>(query_rank);
  ASSIGN_OR_RETURN(const std::uint32_t rotated, reader.count("rope.dimension_count", kHeadDimMax));
  ASSIGN_OR_RETURN(const std::uint32_t key,
                   reader.count_or("attention.key_length_mla", config.key_dim, kHeadDimMax));
  ASSIGN_OR_RETURN(latent.value_dim,
                   reader.count_or("attention.value_length_mla", config.value_dim, kHeadDimMax));
  if (key <= rotated || latent.rank + rotated > kHeadDimMax) {
    return reader.out_of_range("attention.key_length_mla", fmt::format("{}", key),
                               fmt::format("more than the {} dimensions that rotate, and latents "
                                           "and those at most {}",
                                           rotated, kHeadDimMax));
  }
  latent.plain_dim = key - rotated;
  config.kv_heads = 1;
  config.key_dim = latent.rank + rotated;
  config.value_dim = latent.rank;
  config.attention_scale = 1.0f / std::sqrt(static_cast<float>(key));
  return ok_status();
}

}  // namespace

Status describe_deepseek2(const ConfigReader& reader, Config& config) {
  RETURN_IF_ERROR(read_latents(reader, config));
  RopeConfig& rope = config.ropes.front();
  if (rope.scaling == RopeScaling::kYarn) {
    // The magnitude is in the scores, by its square; here the multiplier is a tenth of other
    // files'.
    ASSIGN_OR_RETURN(const float tenth, reader.scale_or("rope.scaling.yarn_log_multiplier", 0));
    const double magnitude = 1.0 + double{tenth} * natural_log(std::max(rope.factor, 1.0));
    config.attention_scale = static_cast<float>(*config.attention_scale * magnitude * magnitude);
    // Without a multiplier, cosines and sines have the magnitude.
    const double in_rotation = tenth == 0 ? rope.attention_factor : 1.0;
    ASSIGN_OR_RETURN(rope.attention_factor,
                     reader.positive_or("rope.scaling.yarn_attn_factor", in_rotation));
  }
  if (!has_experts(reader)) return ok_status();
  // Early files of GLM 4.7 Flash do not say how its router scores.
  constexpr std::uint32_t kGlmVocabulary = 154880;
  const bool is_glm =
      (config.layers == 47 || config.layers == 48) && config.vocabulary == kGlmVocabulary;
  kernels::Router router = {};
  if (is_glm) router.score = kernels::RouterScore::kSigmoid;
  RETURN_IF_ERROR(read_experts(reader, router, config));
  // Version 2 ranks groups of experts by their best, version 3 by their two best.
  kernels::Router& read = config.experts.router;
  read.group_best = read.score == kernels::RouterScore::kSigmoid ? 2 : 1;
  return ok_status();
}

}  // namespace pagoda::model
