// KV memory arithmetic: what a cache of given shape, format and length takes. Pure; every product
// is checked against 2^63 - 1, and the error names the field that went over and its range.
//
//   bytes of a token = sum over layers of  KV heads x (key vector + value vector)
//   total            = sum over layers of  batch x min(tokens, window) x bytes of a token
//
// Where blocks are asked for, a window is as many tokens as the blocks that hold it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"

namespace pagoda::app {

// An element type of the cache and what its scales cost.
struct KvFormat {
  std::string_view name;
  std::int64_t key_bits;           // of an element of K
  std::int64_t value_bits;         // of one of V
  std::int64_t key_group;          // elements of K that share scales; 0: all of one head's vector
  std::int64_t value_group;        // the same of V
  std::int64_t key_group_bytes;    // scales (and minimum) of a group of K; 0: there are none
  std::int64_t value_group_bytes;  // the same of V
  std::string_view scale_rule;     // in words; empty when there are no scales

  bool quantised() const { return key_group_bytes > 0 || value_group_bytes > 0; }
};

// Those that have a name of their own.
std::span<const KvFormat> kv_formats();
// By that name, or by any other that kv_dtype.h reads: an alias, or a pair such as "bf16/int8".
// Lives as long as the program; nullptr: there is none.
const KvFormat* find_kv_format(std::string_view name);

// Layers that keep the same. A latent layer (MLA) keeps one vector of `key_dim` values per token,
// which all heads share: `kv_heads` 1, `value_dim` 0.
struct KvLayers {
  std::int64_t layers = 0;
  std::int64_t kv_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t window = 0;  // tokens kept at most; 0: all
  bool latent = false;

  bool operator==(const KvLayers&) const = default;
};

// May rows of such layers be kept in the format? Groups of elements that share scales do not end
// inside a row, and a latent is key and value at once.
bool keeps_rows(const KvFormat& format, const KvLayers& layers);

struct KvSizeQuery {
  std::vector<KvLayers> groups;
  KvFormat format;
  std::int64_t sequence_length = 1;
  std::int64_t batch_size = 1;
  std::int64_t ranks = 1;  // tensor parallel
  // A window counts as the whole blocks that hold it (kv/memory/blocks_held.h); 0: as its tokens.
  std::int64_t block_size = 0;
};

struct KvBytes {
  std::int64_t payload = 0;  // the values alone
  std::int64_t stored = 0;   // with their scales

  bool operator==(const KvBytes&) const = default;
};

struct KvSize {
  KvBytes per_token;  // of one sequence, all layers
  KvBytes total;
  KvBytes per_rank;             // the fullest rank
  KvBytes all_ranks;            // more than `total` when something is replicated
  std::int64_t rank_heads = 0;  // KV heads on the fullest rank, most of any layer
  bool replicated = false;      // latents are on every rank
  bool uneven = false;          // heads do not divide over the ranks
};

// KV heads divide over the ranks as `tensor_parallel_size` divides them (model/division.h): of more
// ranks than heads some hold none. Latents are never divided.
Result<KvSize> kv_size(const KvSizeQuery& question);

// Blocks of `block_size` slots, `block_bytes` each, for one sequence of `tokens`.
struct KvBlocks {
  std::int64_t blocks = 0;
  std::int64_t slots_unused = 0;
};
Result<KvBlocks> kv_blocks(std::int64_t tokens, std::int64_t block_size, std::int64_t block_bytes);

// `a * b`, or an error that names `field`, whose value is `b`, and the largest value it may have.
Result<std::int64_t> checked_product(std::int64_t a, std::int64_t b, std::string_view field);

// The KV cache that a model needs, layer groups in order of first appearance.
struct KvModel {
  std::vector<KvLayers> groups;
  std::int64_t context_length = 0;
};
Result<KvModel> read_kv_model(const gguf::File& file);

}  // namespace pagoda::app
