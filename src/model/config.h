// The configuration of a model: what the one decoder follows, on CPUs and GPUs. An architecture is
// a description in these words (model/architectures/); plain llama is what all defaults describe.
// Configurations read from files are checked: every number is within its stated limits, and the
// numbers fit each other.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "kernels/ops.h"
#include "kernels/routing.h"
#include "kv/memory/cache_groups.h"

namespace pagoda::model {

// kLongRope: each pair's frequency is divided by a factor of the file's, one of two sets.
enum class RopeScaling : std::uint8_t { kNone, kLinear, kYarn, kLongRope };

struct RopeConfig {
  std::uint32_t dims = 0;  // rotating dimensions of each head, even
  double base = 10000.0;
  kernels::RopePairing pairing = kernels::RopePairing::kAdjacent;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;
  double attention_factor = 1.0;  // multiplies cosines and sines (yarn, longrope)
  std::uint32_t original_context = 0;
  double yarn_beta_fast = 32.0;
  double yarn_beta_slow = 1.0;
  bool rounds_yarn_ramp = true;   // to whole dimensions
  bool needs_divisors = false;    // of frequencies, which the file must hold
  bool has_long_factors = false;  // longrope: those for contexts beyond the original one
};

// Which RMS norms a layer has: of what goes into its attention and feed-forward branches, of what
// comes out of them before it is added to the residual stream, or of both.
enum class BranchNorms : std::uint8_t { kInput, kOutput, kBoth };

// RMS norms of queries and keys, before they are rotated, span each head or all heads together.
enum class QkNormSpan : std::uint8_t { kNone, kHead, kAllHeads };

// How the two halves of a feed-forward layer are joined: silu(gate) * up, gelu(gate) * up with the
// tanh form of gelu, or the clamped form of gpt-oss (kernels/ops.h, clamped_swiglu).
enum class GateKind : std::uint8_t { kSwiGlu, kGeGlu, kClampedSwiGlu };

// A mixture of experts: feed-forward networks of which every token uses a few.
struct ExpertsConfig {
  kernels::Router router = {};     // without experts: every layer is dense
  std::uint32_t hidden_width = 0;  // of an expert
  std::uint32_t shared_width = 0;  // of the expert that every token uses; 0: there is none
  std::uint32_t first_layer = 0;   // layers before this one are dense
  // Gemma 4: the shared expert is a dense network, and it, the experts and the router each see the
  // residual stream by a norm of their own; what the two add has norms of its own, too.
  bool has_own_norms = false;
};

// The KV heads of a layer.
struct HeadShape {
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dim = 0;
  std::uint32_t value_dim = 0;
};

// Multi-head latent attention (MLA). A token keeps one row for all heads: a latent of `rank` values
// and a key that is rotated. Queries are multiplied into the latents' space, in prefill and decode
// alike, so that attention is that of one KV head: key_dim is rank + rope dims, value_dim is rank.
struct LatentConfig {
  std::uint32_t rank = 0;        // 0: layers keep keys and values of heads
  std::uint32_t query_rank = 0;  // rank of the queries' latent; 0: they have none
  std::uint32_t plain_dim = 0;   // dimensions of a query head that are not rotated
  std::uint32_t value_dim = 0;   // dimensions of a head's output

  // The epsilon of both latents' norms: transformers uses this one, whatever config.json says.
  static constexpr float kNormEpsilon = 1e-6f;

  std::uint32_t query_dim(std::uint32_t rope_dims) const { return plain_dim + rope_dims; }
};

// Queries far behind the original context are multiplied: the one at `position` by
// 1 + slope * ln(1 + floor(position / context)).
struct QueryScale {
  float slope = 0;
  std::uint32_t context = 0;
};

// A layer whose queries and keys are not rotated.
inline constexpr std::uint8_t kNoRope = 0xFF;

struct Config {
  std::string architecture = "llama";  // the file's word
  bool is_folder = false;              // read from a Hugging Face folder
  std::string overrides = {};          // what a caller changed of its configuration; or empty
  std::uint32_t layers = 0;
  std::uint32_t left_out_layers = 0;  // behind them: they predict more tokens
  std::uint32_t width = 0;            // embedding length
  std::uint32_t hidden_width = 0;     // feed-forward length of dense layers
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dim = 0;
  std::uint32_t value_dim = 0;
  std::optional<HeadShape> full_heads = {};  // of layers that see all keys, where they differ
  std::uint32_t shared_kv_layers = 0;        // the last ones, which keep no rows (kv_layer_of)
  bool normalises_values = false;            // every head of values, by a norm without weights
  // Are the values of layers that see all keys their keys, before norm and rotation? Unset: as the
  // file has it.
  std::optional<bool> keys_are_values = false;
  bool has_output_scales = false;  // a layer may scale the residual stream behind it
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;  // trained context length
  float norm_epsilon = 1e-5f;
  BranchNorms branch_norms = BranchNorms::kInput;
  QkNormSpan qk_norm = QkNormSpan::kNone;
  GateKind gate = GateKind::kSwiGlu;
  ExpertsConfig experts = {};
  LatentConfig latent = {};
  bool has_sinks = false;  // a learned logit for each query head joins its softmax, without a value
  float embedding_scale = 1;  // multiplies the embedding of a token
  float residual_scale = 1;   // multiplies what a branch adds
  float logit_scale = 1;      // multiplies logits
  float score_cap = 0;        // soft cap of scores; 0: none
  float logit_cap = 0;        // soft cap of logits; 0: none
  std::optional<QueryScale> query_scale = {};
  std::optional<float> attention_scale = {};     // of scores; unset: 1 / sqrt(key_dim)
  std::vector<RopeConfig> ropes = {};            // the rotations that layers choose from
  std::vector<std::uint8_t> rope_of_layer = {};  // index in ropes, or kNoRope; empty: the first
  std::vector<kv::memory::AttentionSpec> attention = {};  // by layer: which keys it sees

  std::uint32_t group() const { return heads / kv_heads; }  // query heads per KV head
  HeadShape heads_of(std::uint32_t layer) const {
    const bool is_full = attention[layer].window == 0;
    return is_full && full_heads ? *full_heads : HeadShape{kv_heads, key_dim, value_dim};
  }
  // The layer whose rows a layer attends to: itself, or, of the last ones, the last that keeps rows
  // and sees as many keys.
  std::uint32_t kv_layer_of(std::uint32_t layer) const {
    const std::uint32_t kept = layers - shared_kv_layers;
    if (layer < kept) return layer;
    std::uint32_t from = kept;
    while (attention[--from].window != attention[layer].window) {
    }
    return from;
  }
  // The KV heads whose keys and values a layer computes: none where it attends to another's rows.
  std::uint32_t own_kv_heads(std::uint32_t layer) const {
    return kv_layer_of(layer) == layer ? heads_of(layer).kv_heads : 0;
  }
  float score_scale() const {
    return attention_scale.value_or(1.0f / std::sqrt(static_cast<float>(key_dim)));
  }
  // Returns the inputs of the output projection: the values of all heads.
  std::size_t mixed_width(std::uint32_t layer) const {
    return std::size_t{heads} * (latent.rank > 0 ? latent.value_dim : heads_of(layer).value_dim);
  }
  bool has_experts(std::uint32_t layer) const {
    return experts.router.experts > 0 && layer >= experts.first_layer;
  }
  // The feed-forward length of what every token of a layer uses: 0 where there is no such part.
  std::uint32_t hidden_width_of(std::uint32_t layer) const {
    return has_experts(layer) ? experts.shared_width : hidden_width;
  }
  std::uint8_t rope_of(std::uint32_t layer) const {
    return rope_of_layer.empty() ? std::uint8_t{0} : rope_of_layer[layer];
  }
};

// Describes the model as it is served with its trained context.
Result<Config> read_config(const gguf::File& file);

// Describes it as it is served with this context, before its weights are loaded: longrope's factors
// are chosen by the context and not by a sequence's length, so that the rows of a prefix do not
// depend on what follows.
void serve_context(std::uint64_t tokens, Config& config);

}  // namespace pagoda::model
