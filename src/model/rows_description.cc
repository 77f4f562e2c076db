#include "model/rows_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pagoda::model {
namespace {

template <class Enum>
int number(Enum value) {
  return static_cast<int>(value);
}

// Raised when a version reads files or folders in another way than the words below tell.
constexpr int kReadingVersion = 1;

// Version 0.1 had two architectures, and read scaled rotations by other rules.
bool is_of_first_version(const Config& config) {
  const bool llama = config.architecture == "llama";
  const RopeConfig& rope = config.ropes.front();
  const auto pairing = llama ? kernels::RopePairing::kAdjacent : kernels::RopePairing::kHalfSplit;
  return (llama || config.architecture == "qwen3") && !config.is_folder &&
         config.experts.router.experts == 0 && !config.attention_scale && config.score_cap == 0 &&
         config.rope_of_layer.empty() && rope.scaling == RopeScaling::kNone &&
         rope.pairing == pairing;
}

std::string describe(const RopeConfig& rope) {
  const auto& [dims, base, pairing, scaling, factor, attention_factor, original_context, beta_fast,
               beta_slow, rounds_ramp, has_long_factors] = rope;
  return fmt::format("{}:{}:{}:{}:{}:{}:{}:{}:{}:{}:{}", dims, base, number(pairing),
                     number(scaling), factor, attention_factor, original_context, beta_fast,
                     beta_slow, rounds_ramp, has_long_factors);
}

std::string describe(const ExpertsConfig& experts) {
  const auto& [router, hidden_width, shared_width, first_layer] = experts;
  const auto& [count, chosen, score, is_normalised, weight_scale, groups, groups_chosen,
               group_best] = router;
  return fmt::format("{}:{}:{}:{}:{}:{}:{}:{}:{}:{}:{}", count, chosen, number(score),
                     is_normalised, weight_scale, groups, groups_chosen, group_best, hidden_width,
                     shared_width, first_layer);
}

}  // namespace

// All members by structured bindings: a member that is added does not compile before it is here.
std::string describe_rows(const Config& config) {
  if (is_of_first_version(config)) return {};
  const auto& [architecture, is_folder, layers, width, hidden_width, heads, kv_heads, key_dim,
               value_dim, vocabulary, context, norm_epsilon, branch_norms, qk_norm, gate, experts,
               has_sinks, embedding_scale, residual_scale, logit_scale, score_cap, logit_cap,
               query_scale, attention_scale, ropes, rope_of_layer, attention] = config;
  // Rows do not depend on the trained context, and logits are no rows.
  static_cast<void>(context);
  static_cast<void>(logit_scale);
  static_cast<void>(logit_cap);
  const auto& [slope, slope_context] = query_scale.value_or(QueryScale{});
  std::vector<std::string> ropes_text;
  for (const RopeConfig& rope : ropes) ropes_text.push_back(describe(rope));
  std::vector<std::uint32_t> windows;
  for (const kv::memory::AttentionSpec& spec : attention) windows.push_back(spec.window);
  return fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} [{}] {} {} {} {} {}:{} {} [{}] [{}] [{}]",
      kReadingVersion, is_folder, architecture, layers, width, hidden_width, heads, kv_heads,
      key_dim, value_dim, vocabulary, norm_epsilon, number(branch_norms), number(qk_norm),
      number(gate), describe(experts), has_sinks, embedding_scale, residual_scale, score_cap, slope,
      slope_context, attention_scale.value_or(0.0f), fmt::join(ropes_text, " "),
      fmt::join(rope_of_layer, " "), fmt::join(windows, " "));
}

}  // namespace pagoda::model
