// The contracts of all math, and the table of functions that fulfil them.
//
// A kernel set is chosen once at start (select.h). Nothing outside kernels/ knows which. Kernels
// own no threads and no memory: each call does a range of independent items of one operation, and
// the caller splits items over threads. What an item computes depends on that item alone, never on
// the range it was part of (ARCHITECTURE.md, "Answers never change").
//
// The order of every floating-point sum is part of the contract. There are two numerics; every
// set follows one of them to the bit, so that sets of one numerics agree with each other:
//
//   fp32       (ref, avx2-fp32, neon-fp32): factors are fp32. A sum is an *8-lane reduction*:
//              terms i = 0, 1, … go into 8 lanes, term i into lane i % 8, each lane in order by
//              fused multiply-add; then lanes fold as a fixed tree: l[i] += l[i + 4] (i < 4),
//              l[i] += l[i + 2] (i < 2), l[0] += l[1].
//
//   int8_bf16  (ref-bf16, neon, avx2, avx512, amx): weights stored as floats are multiplied as
//              bf16; so are keys and values: an *even-odd reduction*, what matrix units with bf16
//              inputs compute. Terms come in blocks of a fixed size, the last filled up with zeros.
//              In a block the even terms are added up by fused multiply-add, and the odd ones, both
//              from 0; even + odd is added to the sum so far. Subnormal factors and results count
//              as zero of their sign. Weights stored as small integers are multiplied as integers:
//              an *exact integer dot product*, below. Everything outside of GEMMs is as in fp32.
//
// All floats are fp32; shapes are written [outermost, …, innermost].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gguf/tensor_type.h"
#include "kernels/activations.h"
#include "kv/memory/view.h"

namespace pagoda::kernels {

// A matrix as it stands in the model file: `rows` rows of `columns` values. Sets that arrange
// weights to their liking (KernelSet::packed_bytes) read `packed` instead.
struct WeightMatrix {
  gguf::TensorType type = gguf::TensorType::kF32;
  const std::byte* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t row_bytes = 0;
  const std::byte* packed = nullptr;
};

// Outputs are computed in panels: a thread's share of a matmul is a whole number of panels.
inline constexpr std::size_t kMatmulPanel = 32;

// y[r, n] = (accumulate ? y[r, n] : 0) + sum over k of x[r, k] * w[n, k]
//
//   fp32       an 8-lane reduction
//   int8_bf16  float weights: an even-odd reduction in blocks of 32.
//              Quantised weights: an *exact integer dot product*. In the file a weight is
//              u * scale + minimum with an integer u from 0 to 255 and a scale and a minimum for 32
//              or 16 columns (ref/quant_block.h). Those of a whole row are put on one grid:
//              weight = row.scale * W with integers W = group_scale * u + zero_point,
//                row.scale   = largest / grid, largest being the largest magnitude u = 0 or the
//                              highest u can have in any group, grid 32600 or, for codes of 8
//                              bits, 32767 * 128; with scales that are powers of two (MXFP4) the
//                              largest of them / 2048
//                group_scale = scale / row.scale to the nearest integer
//                zero_point  = what keeps the middle of the codes in place where minima are stored,
//                              lowest * group_scale where they are not (ref/integer_gemm.cc, in
//                              double precision).
//              x is n * x.scale (activations.h). S is the sum of W * n over all columns, exact, and
//                y = fma(high, 2^24, low) * row.scale * x.scale,  S = 2^24 * high + low,
//              0 <= low < 2^24, both rounded to fp32: the float nearest to S while |S| < 2^48. Not
//              being finite makes a row of x, or of weights, NaN in all its products. Quantised
//              weights of more than ref::kIntegerColumnsMax columns count as floats.
struct Matmul {
  const std::byte* x = nullptr;  // activations of `rows` rows of weight.columns
  std::size_t rows = 0;
  WeightMatrix weight;
  float* y = nullptr;  // [rows, y_stride]
  std::size_t y_stride = 0;
  bool accumulate = false;
};

// Keys a split has in the two numerics, and keys that are weighed together in fp32.
inline constexpr std::uint32_t kFp32SplitKeys = 512;
inline constexpr std::uint32_t kFp32KeyTile = 32;
inline constexpr std::uint32_t kInt8Bf16SplitKeys = 256;

// Integers that stand for the weights of values that are integers: 15 bits, so that sums of a split
// stay below 2^31.
inline constexpr std::int32_t kValueWeightMax = 32767;
inline constexpr float kValueWeightSmallest = 0x1p-100f;

// Consecutive tokens of one sequence, each with all its query heads.
struct AttentionRows {
  kv::memory::SequenceView view;
  const float* q = nullptr;  // [rows, heads, key_dim], after RoPE
  std::uint64_t first_position = 0;
  std::uint32_t rows = 1;
};

// out[h] = sum over visible keys j of softmax_j(scale * q[h] . k[j]) * v[j]
// Visible: j <= position and, with a window W > 0, j > position - W. With S sinks beside the window
// positions before S + W see all keys before them; from there on the sinks themselves, keys j < S,
// are a call of their own (`keys` = S), with queries rotated as at position S + W - 1, whose
// partials merge behind those of the window.
//
// Keys are divided into splits of KernelSet::attention_split, counted from position 0, so that the
// order never depends on where a chunk began. A split gives a partial result; partials merge left
// to right. Within a split
//
//   fp32       keys come in tiles of kFp32KeyTile from position 0: scores by 8-lane reduction over
//              the dimensions, the maximum so far, weights exp(score - maximum), their 8-lane
//              reduction by key, values added key by key, all shrunk by exp(old maximum - new) when
//              the maximum grows.
//   int8_bf16  scores q . k by even-odd reduction in blocks of 32 dimensions; the highest of the
//              split; weights 2^t (power_fixed of kernels/exp.h) of
//              t = fma(score, s, -(highest * s)), where s is scale * log2(e); their sum in 16 lanes
//              by key % 16, folded like an 8-lane reduction; values by even-odd reduction over the
//              keys in blocks of 16 from position 0. The maximum is highest * scale.
//              Keys that are integers (kv/memory/codec.h): the query is n * q.scale like
//              activations (KernelSet::pack_activations), S the sum of n * code over the
//              dimensions that share a scale, exact. From 0, sum = fma(S as the nearest float,
//              scale, sum) for one group of dimensions after the other; score = sum * q.scale.
//              Values that are integers, for each group of dimensions that share a scale: a key
//              weighs w = weight * value's scale, which becomes n = w * (kValueWeightMax / largest
//              w of the split) to the nearest integer, ties to even; S is the sum of n * code over
//              the keys, exact, and the sum of values is (S as the nearest float) * (largest /
//              kValueWeightMax), or 0 where the largest is below kValueWeightSmallest.
//
// With a cap, scores become cap * tanh(scale * score / cap) before all that, and what is written as
// scale is 1 from there on.
//
// All query heads that share a KV head are one item. What is not visible has no influence, also
// when it is NaN: rows not written yet, rows of others, the unwritten half of a pair of tokens.
struct Attention {
  std::uint32_t heads = 0;
  std::uint32_t window = 0;  // 0: all keys
  std::uint32_t sinks = 0;
  std::uint32_t keys = 0;  // only keys before this one are visible; 0: no such bound
  float scale = 1.0f;
  float cap = 0.0f;  // of scores (soft_cap); 0: none
  // The split that the same rows attend to next on this thread, if it is known: kernels may
  // prefetch it. It changes no result.
  const struct KeySplit* next = nullptr;

  // Returns the factor of scores before the softmax: 1 with a cap, which contains the scale.
  constexpr float softmax_scale() const { return cap > 0 ? 1.0f : scale; }
};

// A split of the keys of one KV head.
struct KeySplit {
  std::uint32_t kv_head = 0;
  std::uint64_t split = 0;
};

constexpr std::uint64_t first_visible_key(std::uint64_t position, std::uint32_t window,
                                          std::uint32_t sinks = 0) {
  const std::uint64_t kept = std::uint64_t{window} + sinks;
  return window != 0 && position + 1 > kept ? position + 1 - window : 0;
}
constexpr std::uint64_t first_visible_key(const Attention& job, std::uint64_t position) {
  return first_visible_key(position, job.window, job.sinks);
}
// The key behind the last that is visible.
constexpr std::uint64_t visible_keys_end(const Attention& job, std::uint64_t position) {
  return job.keys != 0 && job.keys < position + 1 ? job.keys : position + 1;
}

// Queries, keys and values must be finite once they are rounded to the cache's element and, in
// int8_bf16, to bf16. A token with one that is not is never left out in silence: every token that
// sees it gets NaN, and its request ends with an error. A query that is not finite is made NaN
// before it attends; store_kv does the same with keys and values. GPUs follow this rule too
// (kernels/cuda/ops.h, RopeAndStoreKv).

// Where the scores of query heads go: that of the key at position j to data[query * stride + j],
// queries numbered row by row, head by head of one KV head.
struct ScoreRows {
  float* data = nullptr;
  std::size_t stride = 0;  // floats, at least the positions of all splits asked for
};

// KV policies that select pages observe the weight of each visible key in a query's softmax
// (kv/page_selection.h). The scores are KernelSet::score_split's; this is one implementation for
// all sets, beside attention and not part of it: no row depends on it, only which pages are
// dropped.
inline constexpr double kAttentionUnit = 0x1p30;  // all weights of a softmax together

struct KernelSet;
// Adds the weights of one query head, whose scores have room for one more. With weights[j] as
// SamplingWeights has them (temperature 1, from the largest score), of keys and of the learned sink
// where there is one, W their sum, b its bits, and every quotient cut off to an integer:
//   sums[j] += weights[j] * (kAttentionUnit * 2^b / W) / 2^b
// Nothing is added where a score is not finite.
void observe_weights(const KernelSet& kernels, std::size_t keys, const float* sink, float* scores,
                     std::uint32_t* weights, std::uint64_t* sums);

// The smallest magnitude that is not finite then (kv/memory/element_range.h): one bound for
// queries, keys and values.
float first_infinite(Numerics numerics, kv::memory::Element element);
// Whether every magnitude is below the limit; NaN is not.
bool all_below(const float* values, std::size_t count, float limit);

// The splits a query at `position` touches: [first, last).
struct SplitRange {
  std::uint64_t first;
  std::uint64_t last;
};
constexpr SplitRange visible_splits(std::uint64_t position, std::uint32_t window,
                                    std::uint64_t split_keys) {
  return {first_visible_key(position, window) / split_keys, position / split_keys + 1};
}
constexpr SplitRange visible_splits(const Attention& job, std::uint64_t position,
                                    std::uint64_t split_keys) {
  return {first_visible_key(job, position) / split_keys,
          (visible_keys_end(job, position) - 1) / split_keys + 1};
}

// A softmax over some keys that can still be merged with others: for each query head of the group
// the maximum, the sum of weights and the weighted values, [group] x (2 + value_dim) floats.
constexpr std::size_t partial_floats(std::size_t group, std::size_t value_dim) {
  return group * (2 + value_dim);
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
//   share[i] = exp((x[i] - best) * inverse_temperature)
//   weights[i] = 2^30 * share[i] to the nearest integer, ties to even; 0 where share[i] < min_p
struct SamplingWeights {
  const float* x = nullptr;  // [count], none above `best`
  std::size_t count = 0;
  float best = 0;
  float inverse_temperature = 1;  // 1 / temperature
  float min_p = 0;
  std::uint32_t* weights = nullptr;  // [count]
};
inline constexpr float kWeightPower = 30;
inline constexpr float kWeightOfBest = 0x1p30f;  // 2^kWeightPower

// gelu(x) = x * sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)) in its tanh form
inline constexpr float kGeluLinear = 1.5957691216057308f;
inline constexpr float kGeluCubic = 0.07135481282993518f;

inline constexpr float kClampedGateMax = 7.0f;
inline constexpr float kClampedGateSlope = 1.702f;

struct KernelSet {
  std::string_view name;  // with version: the numerics id of what these kernels compute
  std::uint32_t version;  // raised whenever a result may change by a bit
  Numerics numerics;
  bool (*runs_here)();  // whether this CPU has the instructions that the set needs

  // The element and orders that store_kv and attend_split are fastest with: pages are laid out so.
  // They accept all others, and give the same bits for every order.
  kv::memory::Element kv_element;
  kv::memory::KeyOrder key_order;
  kv::memory::ValueOrder value_order;
  std::uint32_t attention_split;    // keys
  std::uint32_t attention_queries;  // most query heads of one KV head in a call of several rows

  // Scratch one thread needs, in bytes, aligned to 64.
  std::size_t (*matmul_scratch)(std::size_t columns);
  std::size_t (*attention_scratch)(std::size_t key_dim, std::size_t value_dim);

  // Bytes the weight takes once packed; 0: read from the file as it is.
  std::size_t (*packed_bytes)(const WeightMatrix& weight);
  // Packs rows [begin, end), begin a multiple of kMatmulPanel, into their place in `packed`, which
  // is zero.
  void (*pack)(const WeightMatrix& weight, std::size_t begin, std::size_t end, std::byte* packed);

  // One row of a weight matrix as floats, from the file.
  void (*unpack_row)(const WeightMatrix& weight, std::size_t row, float* out);

  // A row of `columns` floats into its place among activations. In int8_bf16, its integers:
  //   largest = max |x|, scale = largest / kLimbsMax, n = x * (kLimbsMax / largest) to the
  //   nearest integer, ties to even. Scale and n are 0 where largest < 2^-100; where an x is not
  //   finite the scale is NaN and n 0.
  void (*pack_activations)(const float* x, std::size_t columns, std::byte* activations,
                           std::size_t row);

  // Outputs [begin, end) of every row; begin is a multiple of kMatmulPanel.
  void (*matmul)(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch);

  // y = x / sqrt(8-lane reduction of x * x / width + epsilon) * weight, each product rounded; y may
  // be x
  void (*rms_norm)(const float* x, const float* weight, float epsilon, std::size_t width, float* y);

  // Rotates the first 2 * pairs values of a head in place.
  void (*rope)(float* head, const RopeRow& rope);

  // gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i]
  void (*swiglu)(float* gate, const float* up, std::size_t count);
  // The tanh form of gelu: gate[i] = gate[i] / (1 + exp(-inner)) * up[i], where
  // inner = gate[i] * fma(gate[i] * gate[i], kGeluCubic, kGeluLinear)
  void (*geglu)(float* gate, const float* up, std::size_t count);
  // The gate of gpt-oss: with g = min(gate[i], kClampedGateMax) and u = up[i] within
  // +-kClampedGateMax, gate[i] = g / (1 + exp(-(g * kClampedGateSlope))) * (u + 1). NaN stays NaN.
  void (*clamped_swiglu)(float* gate, const float* up, std::size_t count);

  // x[i] = (e - 1) / (e + 1) * cap with e = exp(x[i] * (2 * scale / cap)): cap * tanh(scale * x /
  // cap)
  void (*soft_cap)(float* x, std::size_t count, float scale, float cap);

  // Rounds one token's keys [kv_heads, key_dim] and values [kv_heads, value_dim] into its page;
  // where values stand in keys (PageLayout::values_in_keys), `values` is `keys`. A head with a key
  // or value that is not finite (first_infinite) gets values 0 and a NaN key: a token that sees
  // this one gets NaN, one that does not multiplies by 0 and is unaffected. Returns whether all
  // were finite. In the int8_bf16 numerics subnormals are stored as zero.
  bool (*store_kv)(const kv::memory::SequenceView& view, std::uint64_t position, const float* keys,
                   const float* values);

  // The partial results [rows] of one split for the heads of one KV head. Rows * group is at most
  // attention_queries, or rows is 1. A row that sees no key of the split has no result.
  void (*attend_split)(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                       std::uint64_t split, std::byte* scratch, float* partials);

  // The scores of one split for the heads of one KV head: those that attend_split gives weights to,
  // capped where the model does that, else times the scale. Places of the split's keys that a row
  // does not see may hold anything afterwards. Rows may be any number.
  void (*score_split)(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                      std::uint64_t split, std::byte* scratch, ScoreRows scores);

  // left = merge(left, right), left being the earlier keys, of `group` query heads one after the
  // other: those of one token or of several.
  void (*merge_partials)(float* left, const float* right, std::size_t group, std::size_t value_dim);

  // out[group, value_dim] = weighted values / sum of weights
  void (*normalise_partial)(const float* partial, std::size_t group, std::size_t value_dim,
                            float* out);

  // The largest value, of zeros the positive one; NaN when any value is not finite. count >= 1.
  float (*finite_max)(const float* x, std::size_t count);

  // 8-lane reduction of exp(x[i] - best)
  float (*exp_sum)(const float* x, std::size_t count, float best);

  // Fills the weights and returns their sum.
  std::uint64_t (*sampling_weights)(const SamplingWeights& job);

  // The sum of weights[i] over all i with x[i] >= x_min
  std::uint64_t (*mass_from)(const float* x, const std::uint32_t* weights, std::size_t count,
                             float x_min);
};

}  // namespace pagoda::kernels
