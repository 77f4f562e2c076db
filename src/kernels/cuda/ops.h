// The math on a Hopper GPU: contracts, and the functions that launch it.
//
// A call launches its kernel on a stream and returns; nothing here waits, allocates or copies to
// the host. Sizes that a launch depends on are parameters; what changes from step to step (tokens,
// positions, tables, items) is read on the device, so that a captured graph can be launched again.
// No kernel's result depends on the batch: an output is a function of its own row, the weights and
// absolute positions.
//
// The sm90 numerics, whose id is "hopper". Their reference in plain C++ is reference.h.
//
//   GEMM      The factors are bf16. A sum over K takes steps of 16 columns, in order, one chain
//             from 0: sum = step(sum), where a step adds its 16 products to the sum so far the way
//             a tensor core does, exactly but for bits below 2^-23 or so of the largest of the 17.
//             mma.m16n8k16 and wgmma of any width give the same bits (measured), so tiles may have
//             any shape. K is never split.
//   quantised Quantised weights are multiplied as integers: in each group of 32 columns (16 in
//             kInt8Group16) U = the MMA sum of the codes from 0, X = that of ones (kInt4Min alone);
//             then sum = fma(scale, U, sum), sum = fma(minimum, X, sum); groups in order. K has
//             kSplitK parts of whole chunks, each summed from 0, and y
//             is (part 0 + part 1) + part 2 …, left to right: as many chains may run side by side.
//   norm      rms_norm: 256 threads, thread i adds x * x of columns i, i + 256, … by fma from 0;
//             lanes fold by 16, 8, 4, 2, 1, then warps in order. mean = sum / width,
//             factor = 1 / sqrt(mean + epsilon), y = bf16((x * factor) * weight).
//   QK norm   a warp a head: lane i adds x * x of dimensions i, i + 32, … by fma from 0; lanes fold
//             by 16, 8, 4, 2, 1; mean and factor as above, y = (x * factor) * weight in fp32.
//   row norm  the sums of rms_norm, y = (x * factor) * weight in fp32: norms of what a branch adds,
//             of all heads together, of latents, of embeddings. residual = (residual + y * scale) *
//             output scale, each operation rounded.
//   gates     gates.h: SwiGLU, GeGLU and the clamped SwiGLU, y = bf16(gate(g, u)); soft caps.
//   rope      in fp32 as ops.h: each product rounded, then added.
//   attention Queries and keys are rounded to the element of keys, weights and values to that of
//             values. A cache of codes (kv/memory/codec.h) holds fp16 numbers, code * scale to the
//             nearest: with them all is as in a cache of fp16. Rows of integers are rotated
//             (kv/memory/rotation_blocks.h) by kernels/hadamard.h, and queries with their keys;
//             results are turned back in fp32. Keys are divided into splits of kSplitKeys from
//             position 0, walked in tiles of kKeyTile. A tile: scores by MMA sum over the
//             dimensions, in steps of 16; top = max(top, max(-1e30, scores) * c), c = scale * log2
//             e: also where all are NaN; weight = exp2(fma(score, c, -top)); weights are added in
//             four lanes, key k in lane k % 8 / 2, each in order from 0; values by MMA sum in steps
//             of 16 keys, from 0. To the sums so far both are added by fma(sum, exp2(old top -
//             top), tile's). At the split's end weight sum = (lane 0 + 1) + (2 + 3). Splits merge
//             left to right: top = max of both, a = exp2(left - top), b = exp2(right - top), sum =
//             fma(left, a, right * b). A sink merges last: top = logit * log2 e, weight sum 1,
//             values 0. At the end value sum / weight sum. With a cap, scores are capped (gates.h)
//             before the maximum, and c is log2 e. exp2 is the chip's ex2.approx, within 2 ulp.
//   sampling  Tokens in order: highest logit first, of equals the lowest id. Weights are integers,
//             2^30 * exp_fixed((logit - best) * inverse_temperature) to the nearest even, 0 where
//             the exponential is below min_p; of the first top_k tokens alone. Rounds sample from a
//             field, at first all of them: target = floor(random_unit(seed, round << 32,
//             position) * mass of the field), the token at which weights added up by id pass it; it
//             is the sampled one if what comes before it in order weighs less than top_p * the mass
//             of all, in doubles, else that is the next field. Sums of integers have no order.
//
// The rows that a GEMM multiplies (*packed activations*) stand in blocks of 8 rows by 8 columns,
// 128 bytes each, the shape in which tensor cores read, all rows of 64 columns together, so that a
// few large copies fetch them: [columns / 64][rows / 8][8 blocks][8 rows][8 columns] bf16. Where
// rows have no whole number of 64 columns, whoever writes activations writes zeros into the rest:
// what an earlier step left there may be NaN, and the weights' zeros do not undo that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/device.h"
#include "kernels/cuda/gemm/packed_matrix.h"
#include "kv/memory/page_layout.h"

namespace pagoda::kernels::cuda {

// The numerics id: raised whenever a result may change by a bit.
inline constexpr const char* kNumericsName = "hopper";
inline constexpr std::uint32_t kNumericsVersion = 4;

inline constexpr std::uint32_t kSplitKeys = 256;
inline constexpr std::uint32_t kKeyTile = 64;
inline constexpr std::uint32_t kQueryRows = 16;  // query heads of one KV head in a tile
// The query rows of a wide tile, by head size.
constexpr std::uint32_t wide_rows(std::uint32_t head_dim) { return head_dim > 128 ? 64 : 128; }

using device::StreamHandle;
using Bf16 = std::uint16_t;  // bits

constexpr std::size_t activation_values(std::size_t rows, std::size_t columns) {
  return (rows + 7) / 8 * 8 * chunks_of(columns) * kChunkColumns;
}
// The index of a value in activations of `rows` rows.
constexpr std::size_t activation_index(std::size_t row, std::size_t column, std::size_t rows) {
  const std::size_t row_block = column / kChunkColumns * ((rows + 7) / 8) + row / 8;
  return ((row_block * 8 + column % kChunkColumns / 8) * 8 + row % 8) * 8 + column % 8;
}

// Part `part` of K of a quantised GEMM is chunks [split_k_begin(part), split_k_begin(part + 1)).
inline constexpr std::uint32_t kSplitK = 8;
constexpr std::uint32_t split_k_begin(std::uint32_t chunks, std::uint32_t part) {
  return chunks * part / kSplitK;
}

struct PackedMatrix {
  WeightFormat format = WeightFormat::kBf16;
  const std::byte* data = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};

// The epilogue: what becomes of y[row, n], the product of a row of activations and weight row n.
enum class Epilogue : std::uint8_t {
  kStore,   // out = y + bias
  kAdd,     // out += y + bias
  kSwiGlu,  // weight rows 16i to 16i + 7 are gates, 16i + 8 to 16i + 15 their ups:
            // activations[row, 8i + j] = swiglu(y[16i + j], y[16i + 8 + j]), biases added before.
            // Weight rows of zeros beyond the last make up whole chunks of the activations, which
            // are zeros then.
  kGeGlu,   // the same with geglu, and with clamped_swiglu
  kClampedSwiGlu,
};
constexpr bool is_gate(Epilogue epilogue) { return epilogue >= Epilogue::kSwiGlu; }

struct Gemm {
  PackedMatrix weight;
  const Bf16* x = nullptr;  // activations of weight.columns
  std::uint32_t rows = 0;
  Epilogue epilogue = Epilogue::kStore;
  float* out = nullptr;  // [rows, out_stride]
  std::size_t out_stride = 0;
  const float* bias = nullptr;  // [weight.rows], or none
  Bf16* activations = nullptr;  // gates: of weight.rows / 2 columns
};
void launch_gemm(const Gemm& job, StreamHandle stream);

// The batch of a step, as arrays on the device. Rows beyond those of the step have position
// kNoPosition: they are computed and leave nothing behind.
inline constexpr std::uint32_t kNoPosition = 0xFFFFFFFFu;

struct BatchToken {
  std::uint32_t token;          // when `sampled_index` is kNotSampled
  std::uint32_t sampled_index;  // else: which token sampled by the launch before
  std::uint32_t position;       // kNoPosition: none
  std::uint32_t sequence;
};
inline constexpr std::uint32_t kNotSampled = 0xFFFFFFFFu;

// Rows of one sequence. Tables of group s begin at table + s * the step's table stride.
//
// Under a KV policy (kv/kv_policy.h) rows see `window` keys and the first `sinks` ones in layers
// without a window of their own. A row that sees a gap looks at its sinks with a query of its own,
// rotated as at position sinks + window - 1. They are splits of their own, which merge behind those
// of the window. Blocks in the gap of all rows and groups have no place in tables.
struct BatchSequence {
  std::uint32_t first_row;
  std::uint32_t rows;
  std::uint32_t first_position;
  std::uint32_t table;  // index of its first block id
  std::uint32_t window = 0;
  std::uint32_t sinks = 0;
  std::uint32_t gap_begin = 0;  // blocks that tables leave out: gap_blocks from this one on
  std::uint32_t gap_blocks = 0;

  // The index of a block's id in tables.
  constexpr std::uint32_t table_index(std::uint32_t block) const {
    return table + block - (block < gap_begin ? 0 : gap_blocks);
  }
};

// The keys that the rows of a sequence see in a layer: all before them, where `window` is 0.
struct SeenKeys {
  std::uint32_t window;
  std::uint32_t sinks;

  constexpr SeenKeys(std::uint32_t layer_window, const BatchSequence& sequence)
      : window(layer_window != 0 ? layer_window : sequence.window),
        sinks(layer_window != 0 ? 0 : sequence.sinks) {}
  constexpr bool has_gap(std::uint32_t position) const {
    return sinks > 0 && position >= sinks + window;
  }
  // The first key behind the gap, or of all.
  constexpr std::uint32_t first(std::uint32_t position) const {
    return window != 0 && position >= sinks + window ? position + 1 - window : 0;
  }
  constexpr std::uint32_t sink_splits() const { return (sinks + kSplitKeys - 1) / kSplitKeys; }
};

// Query tile `tile` of a sequence (kQueryRows query rows: row = token * group + head of the group)
// over splits [first_split, last_split). With `partial` kWhole these are all there are, but for
// those of sinks where a row sees a gap, and leave the result; else each leaves a partial one, from
// query row `partial` on. To merge, an item names as many splits as its tile has, those of sinks
// last, and where the first one's are.
struct AttentionItem {
  std::uint32_t sequence;
  std::uint32_t tile;
  std::uint32_t first_split;
  std::uint32_t last_split;
  std::uint32_t partial;    // split after split, [split][kv head][rows of the tile]
  std::uint32_t sinks = 0;  // 1: these are splits of sinks, for rows that see a gap
};
inline constexpr std::uint32_t kWhole = 0xFFFFFFFFu;
// The floats of a query row's partial result: values, maximum, sum, and padding that keeps rows
// aligned.
constexpr std::size_t partial_floats(std::size_t head_dim) { return head_dim + 4; }

// residual[row] = embedding[token of the row] * scale, [rows, width]
struct Embed {
  const Bf16* table = nullptr;  // [vocabulary, width]
  const BatchToken* batch_tokens = nullptr;
  const std::uint32_t* sampled_tokens = nullptr;  // of the launch before
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  float scale = 1;
  float* residual = nullptr;
};
void launch_embed(const Embed& job, StreamHandle stream);

// activations[i] = norm of residual[source ? source[i] : i]
struct RmsNorm {
  const float* residual = nullptr;  // [rows, width]
  const float* weight = nullptr;    // none: no norm, rows are rounded as they are
  const std::uint32_t* source = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  float epsilon = 0;
  Bf16* activations = nullptr;
};
void launch_rms_norm(const RmsNorm& job, StreamHandle stream);

// Normalises rows in place, in fp32.
struct RowNorm {
  float* values = nullptr;  // [rows, stride], from the first value that the norm spans
  std::size_t stride = 0;
  const float* weight = nullptr;  // [width]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  float epsilon = 0;
};
void launch_row_norm(const RowNorm& job, StreamHandle stream);

// residual = (residual + norm(branch) * scale) * output_scale
struct AddBranch {
  const float* branch = nullptr;  // [rows, width]
  const float* weight = nullptr;  // of the norm; none: there is no norm
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  float epsilon = 0;
  float scale = 1;
  float output_scale = 1;
  float* residual = nullptr;
};
void launch_add_branch(const AddBranch& job, StreamHandle stream);

// logits = soft cap of (logits * scale), in place
struct FinishLogits {
  float* logits = nullptr;
  std::uint64_t count = 0;
  float scale = 1;
  float cap = 0;  // 0: none
};
void launch_finish_logits(const FinishLogits& job, StreamHandle stream);

// Normalises the heads of queries, of keys and, by a norm without weights, of values in place.
struct QkNorm {
  float* qkv = nullptr;                 // [rows, (heads + 2 * kv_heads) * head_dim]
  const float* query_weight = nullptr;  // [head_dim]; none: queries have no norm
  const float* key_weight = nullptr;    // the same for keys
  bool normalises_values = false;
  std::uint32_t rows = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  float epsilon = 0;
};
void launch_qk_norm(const QkNorm& job, StreamHandle stream);

// The factor of a product that the element becomes: bf16 itself, else fp16.
constexpr bool is_bf16_factor(kv::memory::Element element) {
  return element == kv::memory::Element::kBF16;
}

// The pages of one layer, and how its block tables are found.
struct PagedKv {
  std::byte* data = nullptr;
  kv::memory::PageLayout layout;          // rows of is_gpu_pair(); block_tokens a power of two
  std::uint32_t layer = 0;                // within the group
  const std::uint32_t* tables = nullptr;  // of this group
};

// The word of a sequence whose row at this position is not finite; 0: all rows are. The word of an
// earlier position is larger.
constexpr std::uint32_t nonfinite_word(std::uint32_t position) { return ~position; }
constexpr std::uint32_t nonfinite_position(std::uint32_t word) { return ~word; }

// Rotates queries and keys by their position, and rows of integers by their blocks, rounds queries,
// and rounds keys and values into their pages. The rule for what is not finite is that of CPUs,
// with the bounds of GPUs (kv/memory/element_range.h), which queries and keys share: a head with a
// key or value that is not finite in its element gets a NaN key and values 0; a head of a query
// that is not is NaN. `nonfinite` of its sequence tells the first position of such a row then
// (nonfinite_word). Rows that see a gap have queries for their sinks, too.
//
// Rotations are tables of positions [0, table_positions), and behind them those of the batch's
// rows, for rows whose positions are beyond.
struct RopeAndStoreKv {
  const float* qkv = nullptr;  // [rows, (heads + 2 * kv_heads) * head_dim]
  bool stores = true;          // else there are queries alone, [rows, heads * head_dim]
  const BatchToken* batch_tokens = nullptr;
  const BatchSequence* sequences = nullptr;
  PagedKv pages;
  std::uint32_t rows = 0;
  std::uint32_t heads = 0;
  std::uint32_t window = 0;  // of the layer
  std::uint32_t table_positions = kNoPosition;
  const float* cosines = nullptr;  // [table_positions + rows, pairs]
  const float* sines = nullptr;
  std::uint32_t pairs = 0;               // 0: nothing is rotated
  bool adjacent = true;                  // kernels::RopePairing
  const float* query_factors = nullptr;  // of the same places, multiply rotated queries; or none
  std::uint16_t* query = nullptr;        // [rows, heads, head_dim] of bf16 keys, or fp16
  std::uint16_t* sink_query = nullptr;   // the same for sinks, of rows that see a gap
  std::uint32_t* nonfinite = nullptr;    // [sequences], or none
};
void launch_rope_and_store_kv(const RopeAndStoreKv& job, StreamHandle stream);

// Rows and queries of latents: `rank` values as they are, then those that rotate. The rule for what
// is not finite is that of RopeAndStoreKv; of such a row the first `rank` values, which are its
// value too, become 0, the others NaN.
struct RopeAndStoreLatents {
  const float* keys = nullptr;         // [rows, rank + 2 * pairs]
  const float* absorbed = nullptr;     // [rows, heads, rank]: queries in the latents' space
  const float* raw_queries = nullptr;  // [rows, heads, query_dim]; the last 2 * pairs rotate
  std::uint32_t query_dim = 0;
  RopeAndStoreKv to;  // all else; layout.value_dim is the rank, `qkv` is not used
};
void launch_rope_and_store_latents(const RopeAndStoreLatents& job, StreamHandle stream);

// Rounds a part of every head of rows to activations of its own: those of head h begin at value h *
// activation_values(rows, width).
struct PackHeads {
  const float* values = nullptr;  // [rows, heads, stride]
  std::size_t stride = 0;
  std::uint32_t rows = 0;
  std::uint32_t heads = 0;
  std::uint32_t width = 0;  // of the part, the first values of a head
  Bf16* activations = nullptr;
};
void launch_pack_heads(const PackHeads& job, StreamHandle stream);

// Rows of keys and of values are multiples of 16 bytes, and value_dim one of 16; dimensions are at
// most kHeadDimMax, of keys of latents kLatentDimMax.
inline constexpr std::uint32_t kHeadDimMax = 512;
inline constexpr std::uint32_t kLatentDimMax = 576;

struct PagedAttention {
  const std::uint16_t* query = nullptr;
  const std::uint16_t* sink_query = nullptr;  // of rows that see a gap
  const BatchSequence* sequences = nullptr;
  PagedKv pages;
  std::uint32_t heads = 0;
  std::uint32_t window = 0;  // of the layer
  float scale = 1;
  float cap = 0;                 // of scores; 0: none
  const float* sinks = nullptr;  // [heads], or none
  const AttentionItem* items = nullptr;
  const std::uint32_t* item_count = nullptr;  // on the device; at most items_max
  std::uint32_t items_max = 0;
  std::uint32_t rows = 0;       // of the step
  float* partials = nullptr;    // [query rows][partial_floats(value_dim)]
  Bf16* activations = nullptr;  // of heads * attention_columns(layout) columns
  // [rows, heads, value_dim]: results go there instead, where values are rotated.
  float* rotated = nullptr;
};
// The columns of one head's result: of latents whole chunks, since every head's are multiplied by a
// matrix of their own.
constexpr std::uint32_t attention_columns(const kv::memory::PageLayout& layout) {
  return layout.values_in_keys ? chunks_of(layout.value_dim) * kChunkColumns : layout.value_dim;
}
// Whether heads of 64, 128 or 256 dimensions have keys and values and no cap: those have kernels of
// their own.
constexpr bool is_plain_attention(const kv::memory::PageLayout& layout, float cap) {
  const std::uint32_t dim = layout.key_dim;
  return (dim == 64 || dim == 128 || dim == 256) && layout.value_dim == dim &&
         !layout.values_in_keys && cap == 0;
}
// Rows of the cache before a sequence's first one are read while the launch before may still run:
// they were there when that one began.
void launch_paged_attention(const PagedAttention& job, StreamHandle stream);
// The kernel of heads that are not plain. It takes all, and gives plain ones the same bits.
void launch_general_attention(const PagedAttention& job, StreamHandle stream);
// Items in wide tiles, all of them kWhole, of rows that see no gap; plain attention alone.
void launch_paged_attention_wide(const PagedAttention& job, StreamHandle stream);

// Merges the partial results that items left. An item here names a tile and all its splits.
void launch_merge_splits(const PagedAttention& job, StreamHandle stream);

// Turns results back: activations of heads * attention_columns(layout) columns are the rotated
// values of blocks of `block` dimensions, rounded.
struct RotateBack {
  const float* rotated = nullptr;  // [rows, heads, value_dim]
  std::uint32_t rows = 0;
  std::uint32_t heads = 0;
  std::uint32_t value_dim = 0;
  std::uint32_t columns = 0;  // of a head
  std::uint32_t block = 0;    // a power of two that divides value_dim
  Bf16* activations = nullptr;
};
void launch_rotate_back(const RotateBack& job, StreamHandle stream);

// Zeros what pages leave unused, of the blocks whose first token is in the batch: what a page
// leaves unused is the same in all pages, and nothing of its block's earlier use is kept.
struct ClearUnused {
  const BatchToken* batch_tokens = nullptr;
  const BatchSequence* sequences = nullptr;
  PagedKv pages;
  std::uint32_t rows = 0;
};
void launch_clear_unused(const ClearUnused& job, StreamHandle stream);

// Copies the rows of the first `tokens` tokens of a block, keys, values and scales of all layers,
// from one page to another, what the page leaves unused, and no byte of another row:
// kv::memory::copy_rows() on the device.
struct BlockCopy {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t tokens = 0;
};
inline constexpr std::size_t kCopiesPerLaunch = 64;
struct CopyRows {
  std::byte* pages = nullptr;
  kv::memory::PageLayout layout;      // rows
  std::span<const BlockCopy> copies;  // in host memory, read before the call returns
};
void launch_copy_rows(const CopyRows& job, StreamHandle stream);

// How a token is chosen: as engine/sampler.h says in its steps 4 to 8, to the bit.
struct GpuSamplingParams {
  std::uint32_t row = 0;          // of the logits; kNoRow: nothing is chosen
  float inverse_temperature = 0;  // 1 / temperature; 0: the first in order
  std::uint32_t top_k = 0;        // at most kTopKMax, or at least the vocabulary; 0: all
  float top_p = 1;
  float min_p = 0;
  std::uint32_t seed_low = 0;
  std::uint32_t seed_high = 0;
  std::uint32_t position = 0;
};
inline constexpr std::uint32_t kNoRow = 0xFFFFFFFFu;
inline constexpr std::uint32_t kTopKMax = 1024;

// sampled_tokens[i] = the token sampled by params i; kNotSampled when a logit of its row is not
// finite.
struct Sample {
  const float* logits = nullptr;               // [rows, vocabulary]
  const GpuSamplingParams* samples = nullptr;  // [count]
  std::uint32_t count = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t* sampled_tokens = nullptr;
};
void launch_sample(const Sample& job, StreamHandle stream);

// Seeded weights in packed format, as if uniform values of the given bound had been packed: for
// measuring without files. Codes and scales are those of a matrix with such values.
struct RandomFill {
  WeightFormat format = WeightFormat::kBf16;
  std::byte* data = nullptr;
  std::uint64_t chunks = 0;  // of all row tiles
  float bound = 1;
  std::uint64_t seed = 0;
};
void launch_random_fill(const RandomFill& job, StreamHandle stream);
// Fills `count` bf16 values, uniform in [-bound, bound).
void launch_random_bf16(Bf16* values, std::uint64_t count, float bound, std::uint64_t seed,
                        StreamHandle stream);

// Raises the shared memory limits of all kernels: once, after the device is open.
Status prepare_kernels();

}  // namespace pagoda::kernels::cuda
