#include "model/rows_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>

namespace pagoda::model {
namespace {

template <class Field>
std::string text_of(const Field& field) {
  if constexpr (std::is_enum_v<Field>) {
    return fmt::format("{}", static_cast<int>(field));
  } else {
    return fmt::format("{}", field);
  }
}

template <class... Fields>
std::string joined(const Fields&... fields) {
  std::string text;
  ((text += text_of(fields) + ":"), ...);
  return text;
}

// Raised when a version reads files or folders in another way than the words below tell.
constexpr int kReadingVersion = 1;

// Version 0.1 had two architectures, and read scaled rotations by other rules.
bool is_of_first_version(const Config& config) {
  const bool llama = config.architecture == "llama";
  const RopeConfig& rope = config.ropes.front();
  const auto pairing = llama ? kernels::RopePairing::kAdjacent : kernels::RopePairing::kHalfSplit;
  return (llama || config.architecture == "qwen3") && !config.is_folder &&
         config.overrides.empty() && config.experts.router.experts == 0 &&
         !config.attention_scale && config.score_cap == 0 && config.rope_of_layer.empty() &&
         rope.scaling == RopeScaling::kNone && rope.pairing == pairing;
}

std::string describe(const RopeConfig& rope) {
  const auto& [dims, base, pairing, scaling, factor, attention_factor, original_context, beta_fast,
               beta_slow, rounds_ramp, needs_divisors, has_long_factors] = rope;
  return joined(dims, base, pairing, scaling, factor, attention_factor, original_context, beta_fast,
                beta_slow, rounds_ramp, needs_divisors, has_long_factors);
}

std::string describe(const ExpertsConfig& experts) {
  const auto& [router, hidden_width, shared_width, first_layer, has_own_norms] = experts;
  const auto& [count, chosen, score, is_normalised, weight_scale, groups, groups_chosen,
               group_best] = router;
  return joined(count, chosen, score, is_normalised, weight_scale, groups, groups_chosen,
                group_best, hidden_width, shared_width, first_layer, has_own_norms);
}

std::string describe(const HeadShape& heads) {
  const auto& [kv_heads, key_dim, value_dim] = heads;
  return joined(kv_heads, key_dim, value_dim);
}

std::string describe(const LatentConfig& latent) {
  const auto& [rank, query_rank, plain_dim, value_dim] = latent;
  return joined(rank, query_rank, plain_dim, value_dim);
}

std::string describe(const QueryScale& scale) {
  const auto& [slope, context] = scale;
  return joined(slope, context);
}

}  // namespace

// All members by structured bindings: a member that is added does not compile before it is here.
std::string describe_rows(const Config& config) {
  if (is_of_first_version(config)) return {};
  const auto& [architecture, is_folder, overrides, layers, left_out_layers, width, hidden_width,
               heads, kv_heads, key_dim, value_dim, full_heads, shared_kv_layers, normalises_values,
               keys_are_values, has_output_scales, vocabulary, context, norm_epsilon, branch_norms,
               qk_norm, gate, experts, latent, has_sinks, embedding_scale, residual_scale,
               logit_scale, score_cap, logit_cap, query_scale, attention_scale, ropes,
               rope_of_layer, attention] = config;
  // Rows do not depend on the trained context, and logits are no rows.
  static_cast<void>(context);
  static_cast<void>(left_out_layers);
  static_cast<void>(logit_scale);
  static_cast<void>(logit_cap);
  std::string text = joined(kReadingVersion, is_folder, overrides, architecture, layers, width,
                            hidden_width, heads, kv_heads, key_dim, value_dim, vocabulary,
                            norm_epsilon, branch_norms, qk_norm, gate, has_sinks, embedding_scale,
                            residual_scale, score_cap, attention_scale.value_or(0.0f));
  text += describe(experts) + describe(latent) + describe(query_scale.value_or(QueryScale{}));
  text += describe(full_heads.value_or(HeadShape{})) + joined(shared_kv_layers, normalises_values,
                                                              keys_are_values.value_or(false),
                                                              has_output_scales);
  for (const RopeConfig& rope : ropes) text += describe(rope);
  text += fmt::format("[{}]", fmt::join(rope_of_layer, " "));
  for (const kv::memory::AttentionSpec& spec : attention) text += fmt::format(" {}", spec.window);
  return text;
}

}  // namespace pagoda::model
