// Families of models in Hugging Face folders: what config.json and tensors of one `model_type` are
// called in GGUF's words, and what transformers assumes where config.json is silent.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "hf/json_file.h"
#include "hf/key_writer.h"

namespace pagoda::hf {

// The conversion of a tensor from a folder's layout to that of GGUF.
enum class TensorChange : std::uint8_t {
  kNone,          // it stays where it is
  kSplitGateUp,   // [experts, 2 * hidden, width]: gates, then ups, of every expert
  kSplitExperts,  // [experts, rows, columns]: one matrix for every expert
  // gpt-oss: rows of gates and ups take turns.
  kMxfp4GateUp,       // blocks of [experts, 2 * hidden, width]
  kMxfp4Down,         // blocks of [experts, width, hidden]
  kTransposedGateUp,  // [experts, width, 2 * hidden]
  kTransposedDown,    // [experts, hidden, width]
  kGateUpBias,        // [experts, 2 * hidden]
  kScales,            // read together with their blocks
};

// A part of a layer, without ".weight" or ".bias" where it has such an end. '*' in both names
// stands for the number of an expert.
struct TensorName {
  std::string_view folder;  // "self_attn.q_proj"
  std::string_view gguf;    // "attn_q"
  TensorChange change = TensorChange::kNone;
};

// Which layers have a window, where `layer_types` does not say.
enum class WindowRule : std::uint8_t {
  kNone,       // transformers ignores `sliding_window` in this family
  kAll,        // all layers
  kFromLayer,  // layers from `max_window_layers` on, where `use_sliding_window` is true
  kFlagged,    // all layers, where `use_sliding_window` is true
  kPattern,    // all but every n-th, where n is `sliding_window_pattern`
};

struct Family {
  std::string_view model_type;    // of config.json
  std::string_view architecture;  // general.architecture
  std::span<const TensorName> names = {};
  double norm_epsilon = 1e-6;
  double rope_base = 10000;
  double rotary_share = 1;      // of a head: partial_rotary_factor
  std::uint64_t head_dim = 0;   // 0: hidden_size / num_attention_heads
  bool needs_kv_heads = false;  // num_key_value_heads has no default
  // Files of Gemma 3 leave out what is the default; 0: must be there.
  std::uint64_t heads = 0;          // num_attention_heads
  std::uint64_t kv_heads = 0;       // num_key_value_heads
  std::uint64_t context = 0;        // max_position_embeddings
  bool tied = false;                // tie_word_embeddings
  bool half_split = false;          // rotates halves where the GGUF architecture rotates pairs
  bool norms_plus_one = false;      // norms multiply by 1 + weight
  bool skips_later_layers = false;  // layers beyond num_hidden_layers predict more tokens
  std::string_view hidden_field = "intermediate_size";
  std::string_view activation = "silu";
  std::string_view activation_field = "hidden_act";
  WindowRule windows = WindowRule::kNone;
  std::uint64_t window = 0;          // sliding_window; 0: none
  std::uint64_t window_pattern = 0;  // sliding_window_pattern
  // Writes the keys that this family adds, and refuses what its architecture does not do.
  Status (*write_keys)(const JsonFields& config, const KeyWriter& keys) = nullptr;
  // Models of this type that need more than this version does are refused by their type.
  bool (*runs)(const JsonFields& config) = nullptr;
};

std::span<const Family> families();

// Finds the family of a config. An error names the families there are, and why not this one where
// that is known.
Result<const Family*> find_family(const JsonFields& config);

}  // namespace pagoda::hf
