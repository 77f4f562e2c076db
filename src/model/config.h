// The configuration of a llama or qwen3 model, read from its metadata and checked: every number is
// within its stated limits, and the numbers fit each other.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "kernels/ops.h"
#include "kv/memory/cache_groups.h"

namespace pagoda::model {

enum class RopeScaling : std::uint8_t { kNone, kLinear, kYarn };

struct RopeConfig {
  std::uint32_t dims = 0;  // rotating dimensions of each head, even
  double base = 10000.0;
  kernels::RopePairing pairing = kernels::RopePairing::kAdjacent;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;
  double attention_factor = 1.0;  // multiplies cosines and sines (yarn)
  std::uint32_t original_context = 0;
  double yarn_beta_fast = 32.0;
  double yarn_beta_slow = 1.0;
};

struct Config {
  std::uint32_t layers = 0;
  std::uint32_t width = 0;         // embedding length
  std::uint32_t hidden_width = 0;  // feed-forward length
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dim = 0;
  std::uint32_t value_dim = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;  // trained context length
  float norm_epsilon = 1e-5f;
  bool qk_norm = false;  // RMS norm of each query and key head before RoPE (qwen3)
  RopeConfig rope;
  std::vector<kv::memory::AttentionSpec> attention;  // by layer: which keys it sees

  std::uint32_t group() const { return heads / kv_heads; }  // query heads per KV head
};

Result<Config> read_config(const gguf::File& file);

}  // namespace pagoda::model
