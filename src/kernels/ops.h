// The contracts of all math, and the table of functions that fulfil them.
//
// A kernel set is chosen once at start (select.h). Nothing outside kernels/ knows which. Kernels
// own no threads and no memory: each call does a range of independent items of one operation, and
// the caller splits items over threads. What an item computes depends on that item alone, never on
// the range it was part of (ARCHITECTURE.md, "Answers never change").
//
// The order of every floating-point sum is part of the contract and is written here:
//
//   lane sum    terms i = 0, 1, … go into 8 lanes, term i into lane i % 8, each lane in order by
//               fused multiply-add; then lanes fold as a fixed tree:
//               l[i] += l[i + 4] (i < 4), l[i] += l[i + 2] (i < 2), l[0] += l[1].
//
// All floats are fp32; shapes are written [outermost, …, innermost].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gguf/tensor_type.h"
#include "kv/memory/view.h"

namespace pagoda::kernels {

// A matrix as it stands in the model file: `rows` rows of `columns` values.
struct WeightMatrix {
  gguf::TensorType type = gguf::TensorType::kF32;
  const std::byte* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t row_bytes = 0;
};

// Outputs are computed in panels: a thread's share of a matmul is a whole number of panels.
inline constexpr std::size_t kMatmulPanel = 16;

// y[r, n] = (accumulate ? y[r, n] : 0) + lane sum over k of x[r, k] * w[n, k]
struct Matmul {
  const float* x = nullptr;  // [rows, x_stride], the first w.columns of each row are used
  std::size_t x_stride = 0;
  std::size_t rows = 0;
  WeightMatrix weight;
  float* y = nullptr;  // [rows, y_stride]
  std::size_t y_stride = 0;
  bool accumulate = false;
};

// Floats of scratch a thread needs for matmul over this many columns.
constexpr std::size_t matmul_scratch_floats(std::size_t columns) { return kMatmulPanel * columns; }

// Keys are walked in tiles of kAttentionTile and partial results restart every kAttentionSplit
// keys, both counted from position 0, so that the order never depends on where a chunk began.
inline constexpr std::size_t kAttentionTile = 32;
inline constexpr std::size_t kAttentionSplit = 512;

// One query row: all query heads of one token.
struct AttentionRow {
  kv::memory::SequenceView view;
  const float* q = nullptr;  // [heads, key_dim], after RoPE
  float* out = nullptr;      // [heads, value_dim]
  std::uint64_t position = 0;
};

// out[h] = sum over visible keys j of softmax_j(scale * q[h] . k[j]) * v[j]
// Visible: j <= position and, with a window W > 0, j > position - W.
//
// Per split a running softmax over tiles: scores by lane sum, the maximum so far, weights
// exp(score - maximum), their lane sum by key position, values added key by key. Splits merge
// left to right. All query heads that share a KV head are one item. Rows that are not visible are
// not multiplied, not even by 0: also not the unwritten half of a pair of tokens.
struct Attention {
  std::uint32_t heads = 0;
  std::uint32_t window = 0;  // 0: all keys
  float scale = 1.0f;
};

constexpr std::uint64_t first_visible_key(std::uint64_t position, std::uint32_t window) {
  return window != 0 && position + 1 > window ? position + 1 - window : 0;
}

// The splits a query at `position` touches: [first, last).
struct SplitRange {
  std::uint64_t first;
  std::uint64_t last;
};
constexpr SplitRange visible_splits(std::uint64_t position, std::uint32_t window) {
  return {first_visible_key(position, window) / kAttentionSplit, position / kAttentionSplit + 1};
}

// A softmax over some keys that can still be merged with others: for each query head of the group
// the maximum, the sum of weights and the weighted values, [group] x (2 + value_dim) floats.
constexpr std::size_t partial_floats(std::size_t group, std::size_t value_dim) {
  return group * (2 + value_dim);
}
// Floats of scratch attend_split needs: one tile of keys, values and scores.
constexpr std::size_t attention_scratch_floats(std::size_t key_dim, std::size_t value_dim) {
  return kAttentionTile * (key_dim + value_dim + 1);
}

enum class RopePairing : std::uint8_t {
  kAdjacent,   // rotates (2i, 2i + 1): the order of llama files
  kHalfSplit,  // rotates (i, i + dims / 2): the order of NEOX-like models
};

// The rotation of one position: for each pair its cosine and sine.
struct RopeRow {
  const float* cosines = nullptr;  // [pairs]
  const float* sines = nullptr;    // [pairs]
  std::size_t pairs = 0;
  RopePairing pairing = RopePairing::kAdjacent;
};

// A row of logits as weights to draw by. Weights are integers, so that the mass of any set of
// tokens is exact and the same in whatever order, by whichever set, it was added up.
//
//   share[i] = exp((x[i] - best) * sharpness)
//   weights[i] = 2^30 * share[i] to the nearest integer, ties to even; 0 where share[i] < share_min
struct Weighing {
  const float* x = nullptr;  // [count], none above `best`
  std::size_t count = 0;
  float best = 0;
  float sharpness = 1;               // 1 / temperature
  float share_min = 0;               // min_p
  std::uint32_t* weights = nullptr;  // [count]
};
inline constexpr float kWeightPower = 30;
inline constexpr float kWeightOfBest = 0x1p30f;  // 2^kWeightPower

struct KernelSet {
  std::string_view name;  // with version: the numerics id of what these kernels compute
  std::uint32_t version;  // raised whenever a result may change by a bit
  bool (*runs_here)();    // does this CPU have what the set needs?

  // The order of values that store_kv and attend_split like best: pages are laid out in it. They
  // take the other one too, and give the same bits.
  kv::memory::ValueOrder value_order;

  // One row of a weight matrix as floats.
  void (*unpack_row)(const WeightMatrix& weight, std::size_t row, float* out);

  // Outputs [begin, end) of every row; begin is a multiple of kMatmulPanel.
  void (*matmul)(const Matmul& job, std::size_t begin, std::size_t end, float* scratch);

  // y = x / sqrt(lane sum of x * x / width + epsilon) * weight, each product rounded
  void (*rms_norm)(const float* x, const float* weight, float epsilon, std::size_t width, float* y);

  // Rotates the first 2 * pairs values of a head in place.
  void (*rope)(float* head, const RopeRow& rope);

  // gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i]
  void (*swiglu)(float* gate, const float* up, std::size_t count);

  // Rounds one token's keys [kv_heads, key_dim] and values [kv_heads, value_dim] into its page.
  void (*store_kv)(const kv::memory::SequenceView& view, std::uint64_t position, const float* keys,
                   const float* values);

  // The partial result of one split for the heads of one KV head.
  void (*attend_split)(const Attention& job, const AttentionRow& row, std::uint32_t kv_head,
                       std::uint64_t split, float* scratch, float* partial);

  // left = merge(left, right), left being the earlier keys.
  void (*merge_partials)(float* left, const float* right, std::size_t group, std::size_t value_dim);

  // out[group, value_dim] = weighted values / sum of weights
  void (*finish_partial)(const float* partial, std::size_t group, std::size_t value_dim,
                         float* out);

  // The largest value, of zeros the positive one; NaN when any value is not finite. count >= 1.
  float (*finite_max)(const float* x, std::size_t count);

  // Lane sum of exp(x[i] - best)
  float (*exp_sum)(const float* x, std::size_t count, float best);

  // Fills the weights and returns their sum.
  std::uint64_t (*weigh)(const Weighing& job);

  // The sum of weights[i] over all i with x[i] >= x_min
  std::uint64_t (*mass_from)(const float* x, const std::uint32_t* weights, std::size_t count,
                             float x_min);
};

}  // namespace pagoda::kernels
