// Translates config.json fields that only Gemma 4 has: layers that see all keys have other heads.
#pragma once

#include "base/result.h"
#include "hf/json_file.h"
#include "hf/key_writer.h"

namespace pagoda::hf {

struct Gemma4Heads {
  std::uint64_t dim = 0;       // of layers with a window
  std::uint64_t full_dim = 0;  // of layers that see all keys
  std::uint64_t kv_heads = 0;
  std::uint64_t full_kv_heads = 0;
};

// Reads `global_head_dim` and `num_global_key_value_heads`, as published, or `per_layer_config`, as
// transformers writes it.
Result<Gemma4Heads> read_gemma4_heads(const JsonFields& config);

// Writes the keys of heads, shared rows and experts. An error where a layer has embeddings of its
// own (the E models).
Status write_gemma4(const JsonFields& config, const KeyWriter& keys);

}  // namespace pagoda::hf
