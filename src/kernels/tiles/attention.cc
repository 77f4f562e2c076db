// Attention by tiles: 16 queries (heads of one KV head, of one or several tokens) with 16 keys at a
// time. The scores of a whole split are computed first, then its weights, then its values, so that
// nothing is ever rescaled within a split.
//
// Scratch: queries [16][dimensions] bf16 | scores [16][256] | weights [16][256] bf16
//          one tile of keys | the split's values, where pages cannot be read as they stand
#include "kernels/ref/pairs.h"
#include "kernels/tiles/kernels.h"
#include "kernels/tiles/round.h"
#include "kernels/tiles/tile.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels::PAGODA_TILE_SET {
namespace {

using kv::memory::Element;

constexpr std::size_t kTileKeys = 16;
constexpr std::size_t kTileQueries = 16;
constexpr std::size_t kStepDimensions = 32;
constexpr std::size_t kLine = 64;
constexpr float kNothing = -__builtin_inff();

constexpr std::size_t round_up(std::size_t count, std::size_t unit) {
  return (count + unit - 1) / unit * unit;
}
template <class T>
constexpr T least(T a, T b) {
  return a < b ? a : b;
}
template <class T>
constexpr T most(T a, T b) {
  return a > b ? a : b;
}

// A right-hand side: rows of 64 bytes, `stride` apart.
struct Right {
  const std::byte* data;
  std::size_t stride;
};

// Where one thread's parts of the scratch begin.
struct Parts {
  Parts(std::size_t key_dim, std::size_t value_dim, std::byte* scratch)
      : steps(round_up(key_dim, kStepDimensions) / kStepDimensions),
        value_columns(round_up(value_dim, 16)),
        queries(reinterpret_cast<std::uint16_t*>(scratch)),
        scores(reinterpret_cast<float*>(scratch + steps * 1024)),
        weights(reinterpret_cast<std::uint16_t*>(scores + kTileQueries * kPairsSplit)),
        keys(reinterpret_cast<std::byte*>(weights + kTileQueries * kPairsSplit)),
        values(keys + steps * 1024) {}

  std::size_t steps;          // of 32 dimensions of a key
  std::size_t value_columns;  // value_dim up to a multiple of 16
  std::uint16_t* queries;
  float* scores;
  std::uint16_t* weights;
  std::byte* keys;
  std::byte* values;  // [split / 16] tiles of [8 pairs][value_columns][2]

  std::size_t value_tile_bytes() const { return 8 * 4 * value_columns; }
  std::size_t bytes(const std::byte* scratch) const {
    const std::byte* const end = values + kPairsSplit / kTileKeys * value_tile_bytes();
    return static_cast<std::size_t>(end - scratch);
  }
};

// `count` elements as bf16 factors.
void convert(Element element, const std::byte* from, std::size_t count, std::byte* to) {
  if (element == Element::kBF16) {
    __builtin_memcpy(to, from, 2 * count);
    return;
  }
  auto* const halves = reinterpret_cast<std::uint16_t*>(to);
  for (std::size_t i = 0; i < count; i += kLanes) {
    const F32x16 values = element == Element::kF16
                              ? load_fp16(reinterpret_cast<const std::uint16_t*>(from) + i)
                              : load(reinterpret_cast<const float*>(from) + i);
    store_bf16(halves + i, values);
  }
}

// The keys and values of one KV head, tile by tile. Rows outside [begin, end) are not visible to
// any query of the call.
class Pages {
 public:
  Pages(const kv::memory::SequenceView& view, std::uint32_t head, std::uint64_t begin,
        std::uint64_t end, const Parts& parts)
      : view_(view),
        layout_(view.layer.layout),
        head_(head),
        begin_(begin),
        end_(end),
        parts_(parts),
        whole_tiles_(layout_.block_tokens % kTileKeys == 0),
        key_columns_(whole_tiles_ && layout_.key_order == kv::memory::KeyOrder::kColumns &&
                     layout_.key_dim % kStepDimensions == 0),
        value_pairs_(whole_tiles_ && layout_.value_order == kv::memory::ValueOrder::kTokenPairs &&
                     layout_.value_dim % 16 == 0) {}

  // Keys [tile, tile + 16): [dimension pair][key][2]. What is not visible may be anything: it stays
  // in its own column of scores.
  Right keys(std::uint64_t tile) const {
    if (key_columns_) {
      const std::byte* const first = view_.key_row(head_, tile).data;
      const std::size_t stride =
          2 * layout_.block_tokens * kv::memory::element_bytes(layout_.element);
      if (layout_.element == Element::kBF16) return {first, stride};
      for (std::size_t pair = 0; pair < layout_.key_dim / 2; ++pair) {
        convert(layout_.element, first + pair * stride, 2 * kTileKeys, parts_.keys + pair * kLine);
      }
      return {parts_.keys, kLine};
    }
    gather_keys(tile);
    return {parts_.keys, kLine};
  }

  // Values of keys [tile, tile + 16): [key pair][dimension][2]. What is not visible is 0.
  Right values(std::uint64_t tile) const {
    const bool all_visible = begin_ <= tile && tile + kTileKeys <= end_;
    if (!value_pairs_) return gather_values(tile);
    const std::byte* const first = view_.value_row(head_, tile).data;
    const std::size_t count = kTileKeys * layout_.value_dim;
    if (layout_.element == Element::kBF16 && all_visible) return {first, 4 * layout_.value_dim};
    std::byte* const target = value_place(tile);
    convert(layout_.element, first, count, target);
    if (!all_visible) hide_values(tile, target);
    return {target, 4 * layout_.value_dim};
  }

 private:
  bool visible(std::uint64_t key) const { return begin_ <= key && key < end_; }
  std::byte* value_place(std::uint64_t tile) const {
    return parts_.values + tile % kPairsSplit / kTileKeys * parts_.value_tile_bytes();
  }
  static std::byte* half_of(std::byte* pairs, std::size_t row, std::size_t column,
                            std::size_t columns, std::size_t second) {
    return pairs + 4 * (row * columns + column) + 2 * second;
  }

  // A pair of keys is a line of words: its first key in the low halves, its second in the high
  // ones.
  void hide_values(std::uint64_t tile, std::byte* target) const {
    for (std::size_t pair = 0; pair < kTileKeys / 2; ++pair) {
      const std::uint32_t stays = (visible(tile + 2 * pair) ? 0x0000FFFFu : 0) |
                                  (visible(tile + 2 * pair + 1) ? 0xFFFF0000u : 0);
      if (stays == 0xFFFFFFFFu) continue;
      auto* const words = reinterpret_cast<std::uint32_t*>(target) + pair * layout_.value_dim;
      for (std::size_t d = 0; d < layout_.value_dim; ++d) words[d] &= stays;
    }
  }

  void gather_keys(std::uint64_t tile) const {
    __builtin_memset(parts_.keys, 0, parts_.steps * 1024);
    for (std::size_t key = 0; key < kTileKeys; ++key) {
      if (!visible(tile + key)) continue;
      const kv::memory::Row row = view_.key_row(head_, tile + key);
      for (std::size_t d = 0; d < layout_.key_dim; ++d) {
        put_half(row, d, half_of(parts_.keys, d / 2, key, kTileKeys, d % 2));
      }
    }
  }

  Right gather_values(std::uint64_t tile) const {
    std::byte* const target = value_place(tile);
    __builtin_memset(target, 0, parts_.value_tile_bytes());
    for (std::size_t key = 0; key < kTileKeys; ++key) {
      if (!visible(tile + key)) continue;
      const kv::memory::Row row = view_.value_row(head_, tile + key);
      for (std::size_t d = 0; d < layout_.value_dim; ++d) {
        put_half(row, d, half_of(target, key / 2, d, parts_.value_columns, key % 2));
      }
    }
    return {target, 4 * parts_.value_columns};
  }

  void put_half(kv::memory::Row row, std::size_t i, std::byte* to) const {
    alignas(64) float value[kLanes] = {};
    alignas(64) std::uint16_t halves[kLanes];
    const std::size_t bytes = kv::memory::element_bytes(layout_.element);
    kv::memory::decode_row(layout_.element, {row.data + row.place(i) * bytes}, 1, value);
    store_bf16(halves, load(value));
    __builtin_memcpy(to, halves, 2);
  }

  const kv::memory::SequenceView& view_;
  const kv::memory::PageLayout& layout_;
  std::uint32_t head_;
  std::uint64_t begin_;
  std::uint64_t end_;
  const Parts& parts_;
  bool whole_tiles_;  // 16 keys from a multiple of 16 never lie in two blocks
  bool key_columns_;
  bool value_pairs_;
};

// One call's queries, up to 16 of them, over one split.
struct Job {
  const Attention& attention;
  const AttentionRows& rows;
  std::uint32_t kv_head;
  std::uint32_t group;
  std::uint64_t begin;  // keys visible to any token of the call
  std::uint64_t end;
  std::size_t first_query;
  std::size_t queries;
  const Parts& parts;
  const Pages& pages;

  std::uint64_t first_tile() const { return begin / kTileKeys * kTileKeys; }
  std::uint64_t position(std::size_t query) const {
    return rows.first_position + (first_query + query) / group;
  }
  // Queries are numbered token by token, head by head.
  const float* q(std::size_t query) const {
    const std::size_t token = (first_query + query) / group;
    const std::size_t head = kv_head * group + (first_query + query) % group;
    return rows.q + (token * attention.heads + head) * rows.view.layer.layout.key_dim;
  }
};

void load_queries(const Job& job) {
  const std::size_t key_dim = job.rows.view.layer.layout.key_dim;
  const std::size_t width = job.parts.steps * kStepDimensions;
  for (std::size_t query = 0; query < job.queries; ++query) {
    std::uint16_t* const row = job.parts.queries + query * width;
    round_row(job.q(query), key_dim, row);
    __builtin_memset(row + key_dim, 0, 2 * (width - key_dim));
  }
}

// One tile of keys into tile C. With two steps, the queries stay in tiles 4 and 5.
template <int C>
void score_tile(const Job& job, std::uint64_t tile, float* scores) {
  const Right right = job.pages.keys(tile);
  const std::size_t steps = job.parts.steps;
  tile_zero<C>();
  if (steps == 2) {
    tile_load<6>(right.data, right.stride);
    tile_product<C, 4, 6>();
    tile_load<7>(right.data + 16 * right.stride, right.stride);
    tile_product<C, 5, 7>();
  } else {
    const auto* const left = reinterpret_cast<const std::byte*>(job.parts.queries);
    for (std::size_t step = 0; step < steps; ++step) {
      tile_load<4>(left + step * kLine, steps * kLine);
      tile_load<6>(right.data + step * 16 * right.stride, right.stride);
      tile_product<C, 4, 6>();
    }
  }
  tile_store<C>(scores, kPairsSplit * sizeof(float));
}

// scores[query][key] for every tile of keys. Four tiles in turn: no product waits for the one of
// the tile before.
void compute_scores(TileScope& scope, const Job& job) {
  TileShapes shapes;
  const auto queries = static_cast<std::uint8_t>(job.queries);
  for (const int c : {0, 1, 2, 3}) shapes.set(c, {queries, 64});
  for (const int left : {4, 5}) shapes.set(left, {queries, 64});
  for (const int right : {6, 7}) shapes.set(right, {16, 64});
  scope.use(shapes);
  if (job.parts.steps == 2) {
    const auto* const left = reinterpret_cast<const std::byte*>(job.parts.queries);
    tile_load<4>(left, 2 * kLine);
    tile_load<5>(left + kLine, 2 * kLine);
  }
  float* scores = job.parts.scores;
  std::uint64_t tile = job.first_tile();
  const auto score = [&]<int C>() {
    if (tile >= job.end) return;
    score_tile<C>(job, tile, scores);
    tile += kTileKeys;
    scores += kTileKeys;
  };
  while (tile < job.end) {
    score.template operator()<0>();
    score.template operator()<1>();
    score.template operator()<2>();
    score.template operator()<3>();
  }
}

// Bits of the lanes whose keys tile, tile + 1, … lie in [begin, end).
std::uint32_t lanes_within(std::uint64_t tile, std::uint64_t begin, std::uint64_t end) {
  std::uint32_t lanes = 0xFFFF;
  if (begin > tile) lanes &= begin - tile >= 16 ? 0 : 0xFFFFu << (begin - tile);
  if (end < tile + 16) lanes &= end <= tile ? 0 : 0xFFFFu >> (tile + 16 - end);
  return lanes;
}

// Scores of one query to weights. partial: maximum, sum of weights
void compute_weights(const Job& job, std::size_t query, float* partial) {
  float* const scores = job.parts.scores + query * kPairsSplit;
  std::uint16_t* const weights = job.parts.weights + query * kPairsSplit;
  const std::uint64_t position = job.position(query);
  const std::uint64_t begin = most(first_visible_key(position, job.attention.window), job.begin);
  const std::uint64_t end = least(position + 1, job.end);
  const F32x16 nothing = broadcast(kNothing);
  const F32x16 scale = broadcast(job.attention.scale);
  F32x16 highest = nothing;
  std::size_t at = 0;
  for (std::uint64_t tile = job.first_tile(); tile < job.end; tile += kTileKeys, at += kLanes) {
    const F32x16 scaled = load(scores + at) * scale;
    const F32x16 seen = select(lanes_within(tile, begin, end), scaled, nothing);
    highest = max(highest, seen);
    store(scores + at, seen);
  }
  const float maximum = fold_max(highest);
  const F32x16 shift = broadcast(maximum == kNothing ? 0.0f : maximum);
  F32x16 sum = broadcast(0.0f);
  for (std::size_t i = 0; i < at; i += kLanes) {
    const F32x16 weight = exp_up_to_highest(load(scores + i) - shift);
    sum = sum + weight;
    store_bf16(weights + i, weight);
  }
  partial[0] = maximum;
  partial[1] = fold_sum(sum);
}

// Columns [column, column + 16 * Columns) of the weighted values of all queries.
//   tiles: c 0 to 3, left 4, right 5 6
template <int Columns>
void add_values(const Job& job, const Right* values, std::size_t column, float* out,
                std::size_t out_stride) {
  tile_zero<0>();
  if constexpr (Columns > 1) tile_zero<1>();
  if constexpr (Columns > 2) tile_zero<2>();
  if constexpr (Columns > 3) tile_zero<3>();
  const auto* weights = reinterpret_cast<const std::byte*>(job.parts.weights);
  std::size_t index = 0;
  for (std::uint64_t tile = job.first_tile(); tile < job.end; tile += kTileKeys) {
    const Right right = values[index++];
    const std::byte* const first = right.data + 4 * column;
    tile_load<4>(weights, kPairsSplit * 2);
    tile_load<5>(first, right.stride);
    tile_product<0, 4, 5>();
    if constexpr (Columns > 1) {
      tile_load<6>(first + kLine, right.stride);
      tile_product<1, 4, 6>();
    }
    if constexpr (Columns > 2) {
      tile_load<5>(first + 2 * kLine, right.stride);
      tile_product<2, 4, 5>();
    }
    if constexpr (Columns > 3) {
      tile_load<6>(first + 3 * kLine, right.stride);
      tile_product<3, 4, 6>();
    }
    weights += kTileKeys * 2;
  }
  tile_store<0>(out + column, out_stride);
  if constexpr (Columns > 1) tile_store<1>(out + column + 16, out_stride);
  if constexpr (Columns > 2) tile_store<2>(out + column + 32, out_stride);
  if constexpr (Columns > 3) tile_store<3>(out + column + 48, out_stride);
}

// out: [queries], `stride` bytes apart, value_columns floats each
void compute_values(TileScope& scope, const Job& job, float* out, std::size_t stride) {
  TileShapes shapes;
  const auto queries = static_cast<std::uint8_t>(job.queries);
  for (const int c : {0, 1, 2, 3}) shapes.set(c, {queries, 64});
  shapes.set(4, {queries, 32});
  for (const int right : {5, 6}) shapes.set(right, {8, 64});
  scope.use(shapes);
  Right values[kPairsSplit / kTileKeys];
  std::size_t tiles = 0;
  for (std::uint64_t tile = job.first_tile(); tile < job.end; tile += kTileKeys) {
    values[tiles++] = job.pages.values(tile);
  }
  const std::size_t columns = job.parts.value_columns;
  std::size_t column = 0;
  for (; column + 64 <= columns; column += 64) add_values<4>(job, values, column, out, stride);
  for (; column + 32 <= columns; column += 32) add_values<2>(job, values, column, out, stride);
  if (column < columns) add_values<1>(job, values, column, out, stride);
}

void attend(const Job& job, float* partials) {
  const std::size_t value_dim = job.rows.view.layer.layout.value_dim;
  const std::size_t partial_floats = 2 + value_dim;
  const FlushSubnormals flush;
  TileScope scope;
  load_queries(job);
  compute_scores(scope, job);
  for (std::size_t query = 0; query < job.queries; ++query) {
    compute_weights(job, query, partials + query * partial_floats);
  }
  if (value_dim == job.parts.value_columns) {
    compute_values(scope, job, partials + 2, partial_floats * sizeof(float));
    return;
  }
  // Columns that do not exist must not be written: by way of the scores, which are done with.
  static_assert(kTileQueries * kPairsSplit >= 16 * 256);
  const std::size_t columns = job.parts.value_columns;
  compute_values(scope, job, job.parts.scores, columns * sizeof(float));
  for (std::size_t query = 0; query < job.queries; ++query) {
    __builtin_memcpy(partials + query * partial_floats + 2, job.parts.scores + query * columns,
                     value_dim * sizeof(float));
  }
}

}  // namespace

std::size_t attention_scratch(std::size_t key_dim, std::size_t value_dim) {
  const Parts parts(key_dim, value_dim, nullptr);
  return parts.bytes(nullptr);
}

void attend_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                  std::uint64_t split, std::byte* scratch, float* partials) {
  const kv::memory::PageLayout& layout = rows.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  const std::uint64_t last_position = rows.first_position + rows.rows - 1;
  const std::uint64_t begin =
      most(first_visible_key(rows.first_position, job.window), split * kPairsSplit);
  const std::uint64_t end = least(last_position + 1, (split + 1) * kPairsSplit);
  if (begin >= end) return;
  const Parts parts(layout.key_dim, layout.value_dim, scratch);
  const Pages pages(rows.view, kv_head, begin, end, parts);
  const std::size_t all = std::size_t{rows.rows} * group;
  for (std::size_t first = 0; first < all; first += kTileQueries) {
    attend({job, rows, kv_head, group, begin, end, first, least(kTileQueries, all - first), parts,
            pages},
           partials + first * (2 + layout.value_dim));
  }
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET
