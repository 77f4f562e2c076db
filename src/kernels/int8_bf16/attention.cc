// Attention by tiles: 16 or 32 queries (heads of one KV head, of one or several tokens) with 16
// keys at a time. The scores of a whole split are computed first, then its weights, then its
// values, so that nothing is ever rescaled within a split. A call takes many tiles of queries
// through one split: its keys and values come from memory once.
#include "kernels/int8_bf16/amx_tile.h"
#include "kernels/int8_bf16/attention_pages.h"
#include "kernels/int8_bf16/kernels.h"
#include "kernels/int8_bf16/round.h"
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include "kernels/int8_bf16/attention_neon.h"
#endif

namespace pagoda::kernels::PAGODA_ISA {
namespace {

constexpr std::size_t kTileRows = 16;
constexpr float kNothing = -__builtin_inff();

// Memory is asked for tiles in the order they are used in: keys, values, the keys that are next.
// Four tiles are 8 KB of heads of 64: what a thread can wait for at once.
constexpr std::size_t kFetchAhead = 4;

template <class T>
constexpr T least(T a, T b) {
  return a < b ? a : b;
}
template <class T>
constexpr T most(T a, T b) {
  return a > b ? a : b;
}

// One call: the queries of several tokens over one split.
struct SplitCall {
  const Attention& attention;
  const AttentionRows& rows;
  std::uint32_t kv_head;
  std::uint32_t group;
  std::uint64_t split;
  const AttentionScratch& parts;
  KvTiles sides;
  KvTile next_keys[kFetchAhead];  // the first of what is attended to next
  std::size_t next_tiles;

  // Keys of the split that a token sees, counted from the split's first: [begin, end).
  std::size_t begin(std::uint32_t token) const {
    return within(first_visible_key(rows.first_position + token, attention.window));
  }
  std::size_t end(std::uint32_t token) const { return within(rows.first_position + token + 1); }

 private:
  std::size_t within(std::uint64_t key) const {
    const std::uint64_t first = split * kInt8Bf16SplitKeys;
    return key <= first ? 0 : least<std::uint64_t>(key - first, kInt8Bf16SplitKeys);
  }
};

// Up to 32 of its queries, numbered token by token, head by head, and the keys any of them sees.
struct QueryTile {
  QueryTile(const SplitCall& of, std::uint32_t first, std::uint32_t count)
      : call(of),
        first_query(first),
        queries(count),
        first_tile(of.begin(first / of.group) / kKeyTile),
        last_tile(round_up(of.end((first + count - 1) / of.group), kKeyTile) / kKeyTile) {}

  // Queries of the first and the second tile register.
  std::uint8_t rows(int left) const {
    const std::size_t before = static_cast<std::size_t>(left) * kTileRows;
    return static_cast<std::uint8_t>(least<std::size_t>(queries - before, kTileRows));
  }
  std::uint32_t token(std::uint32_t query) const { return (first_query + query) / call.group; }
  // Whether every query sees all these keys.
  bool all_visible() const {
    return call.begin(token(queries - 1)) <= first_tile * kKeyTile &&
           last_tile * kKeyTile <= call.end(token(0));
  }

  const SplitCall& call;
  std::uint32_t first_query;
  std::uint32_t queries;
  std::size_t first_tile;  // of keys, within the split: [first_tile, last_tile)
  std::size_t last_tile;
};

void fetch_keys(const QueryTile& tile, KvTile keys) {
  fetch_lines(keys.data, tile.call.rows.view.layer.layout.key_dim / 2, keys.stride);
}
void fetch_values(const QueryTile& tile, std::size_t index) {
  if (index >= tile.last_tile) return;
  fetch_lines(tile.call.sides.values[index].data, tile.call.parts.value_columns / 2, kLine);
}
// While tile `index` of keys is used, and while tile `index` of values is. The first queries fetch
// for all.
void fetch_after_keys(const QueryTile& tile, std::size_t index) {
  if (tile.first_query != 0) return;
  const std::size_t ahead = index + kFetchAhead;
  if (ahead < tile.last_tile) {
    fetch_keys(tile, tile.call.sides.keys[ahead]);
  } else {
    fetch_values(tile, ahead - tile.last_tile + tile.first_tile);
  }
}
void fetch_after_values(const QueryTile& tile, std::size_t index) {
  if (tile.first_query != 0) return;
  const std::size_t ahead = index + kFetchAhead;
  if (ahead < tile.last_tile) {
    fetch_values(tile, ahead);
  } else if (ahead - tile.last_tile < tile.call.next_tiles) {
    fetch_keys(tile, tile.call.next_keys[ahead - tile.last_tile]);
  }
}

void load_queries(const QueryTile& tile) {
  const SplitCall& call = tile.call;
  const std::size_t key_dim = call.rows.view.layer.layout.key_dim;
  const std::size_t width = call.parts.steps * kStepDimensions;
  std::uint32_t head = tile.first_query % call.group;
  const float* token = call.rows.q + (std::size_t{tile.token(0)} * call.attention.heads +
                                      std::size_t{call.kv_head} * call.group) *
                                         key_dim;
  for (std::size_t query = 0; query < tile.queries; ++query) {
    std::uint16_t* const row = call.parts.queries + query * width;
    round_row(token + head * key_dim, key_dim, row);
    __builtin_memset(row + key_dim, 0, 2 * (width - key_dim));
    if (++head < call.group) continue;
    head = 0;
    token += call.attention.heads * key_dim;
  }
}

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)

// scores[query][key] for every tile of keys.
template <int Lefts>
void compute_scores(TileScope&, const QueryTile& tile) {
  const AttentionScratch& parts = tile.call.parts;
  for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
    fetch_after_keys(tile, keys);
    score_keys({reinterpret_cast<const std::byte*>(parts.queries), parts.steps * kLine},
               tile.queries, parts.steps, tile.call.sides.keys[keys],
               {parts.scores + keys * kKeyTile, kInt8Bf16SplitKeys});
  }
}

#else

// scores[query][key] for every tile of keys.
//   tiles: c 0 1, left 2 3 and 4 5, right 6 7. With two steps the queries stay where they are.
template <int Lefts>
void compute_scores(TileScope& scope, const QueryTile& tile) {
  const AttentionScratch& parts = tile.call.parts;
  AmxTileConfig shapes;
  for (int left = 0; left < Lefts; ++left) {
    for (const int t : {left, 2 + 2 * left, 3 + 2 * left}) shapes.set(t, {tile.rows(left), 64});
  }
  for (const int right : {6, 7}) shapes.set(right, {16, 64});
  scope.use(shapes);
  const std::size_t stride = parts.steps * kLine;
  const auto* const first = reinterpret_cast<const std::byte*>(parts.queries);
  const std::byte* const second = first + kTileRows * stride;
  const auto load_left = [&]<int Place>(std::size_t step) {
    tile_load<2 + Place>(first + step * kLine, stride);
    if constexpr (Lefts > 1) tile_load<4 + Place>(second + step * kLine, stride);
  };
  const auto multiply = [&]<int Place>(KvTile right, std::size_t step) {
    tile_load<6 + Place>(right.data + step * 16 * right.stride, right.stride);
    tile_dpbf16ps<0, 2 + Place, 6 + Place>();
    if constexpr (Lefts > 1) tile_dpbf16ps<1, 4 + Place, 6 + Place>();
  };
  if (parts.steps == 2) {
    load_left.template operator()<0>(0);
    load_left.template operator()<1>(1);
  }
  for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
    fetch_after_keys(tile, keys);
    const KvTile right = tile.call.sides.keys[keys];
    tile_zero<0>();
    if constexpr (Lefts > 1) tile_zero<1>();
    if (parts.steps == 2) {
      multiply.template operator()<0>(right, 0);
      multiply.template operator()<1>(right, 1);
    } else {
      for (std::size_t step = 0; step < parts.steps; ++step) {
        load_left.template operator()<0>(step);
        multiply.template operator()<0>(right, step);
      }
    }
    float* const scores = parts.scores + keys * kKeyTile;
    tile_store<0>(scores, kInt8Bf16SplitKeys * sizeof(float));
    if constexpr (Lefts > 1) {
      tile_store<1>(scores + kTileRows * kInt8Bf16SplitKeys, kInt8Bf16SplitKeys * sizeof(float));
    }
  }
}

#endif

// Bits of the lanes whose keys key, key + 1, … lie in [begin, end).
std::uint32_t lanes_within(std::size_t key, std::size_t begin, std::size_t end) {
  std::uint32_t lanes = 0xFFFF;
  if (begin > key) lanes &= begin - key >= 16 ? 0 : 0xFFFFu << (begin - key);
  if (end < key + 16) lanes &= end <= key ? 0 : 0xFFFFu >> (key + 16 - end);
  return lanes;
}

// Scores of keys that a query does not see become the lowest there is.
void hide_scores(const QueryTile& tile) {
  if (tile.all_visible()) return;
  for (std::uint32_t query = 0; query < tile.queries; ++query) {
    const std::size_t begin = tile.call.begin(tile.token(query));
    const std::size_t end = tile.call.end(tile.token(query));
    float* const scores = tile.call.parts.scores + query * kInt8Bf16SplitKeys;
    for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
      float* const place = scores + keys * kKeyTile;
      const std::uint32_t lanes = lanes_within(keys * kKeyTile, begin, end);
      store(place, select(lanes, load(place), broadcast(kNothing)));
    }
  }
}

void cap_scores(const QueryTile& tile) {
  const Attention& attention = tile.call.attention;
  for (std::size_t query = 0; query < tile.queries && attention.cap > 0; ++query) {
    float* const scores = tile.call.parts.scores + query * kInt8Bf16SplitKeys;
    soft_cap(scores + tile.first_tile * kKeyTile, (tile.last_tile - tile.first_tile) * kKeyTile,
             attention.scale, attention.cap);
  }
}

// The highest score of one query.
float highest_score(const QueryTile& tile, std::size_t query) {
  const float* const scores = tile.call.parts.scores + query * kInt8Bf16SplitKeys;
  const std::size_t first = tile.first_tile * kKeyTile;
  const std::size_t last = tile.last_tile * kKeyTile;
  F32x16 highest = broadcast(kNothing);
  for (std::size_t key = first; key < last; key += kLanes) {
    highest = max(highest, load(scores + key));
  }
  return fold_max(highest);
}

// Scores of one query to weights, which are written over scores already read. partial: maximum, sum
// of weights
void compute_weights(const QueryTile& tile, std::size_t query, float highest, float* partial) {
  const float* const scores = tile.call.parts.scores + query * kInt8Bf16SplitKeys;
  std::uint16_t* const weights = tile.call.parts.weights(query);
  const Attention& attention = tile.call.attention;
  const float scale = attention.softmax_scale();
  const std::size_t first = tile.first_tile * kKeyTile;
  const std::size_t last = tile.last_tile * kKeyTile;
  const float power = scale * exp_steps::kLog2E;
  const F32x16 powers = broadcast(power);
  const F32x16 shift = broadcast(highest == kNothing ? 0.0f : -(highest * power));
  const auto weight_of = [&](std::size_t key) {
    return power_of_two(fma(load(scores + key), powers, shift));
  };
  F32x16 sum = broadcast(0.0f);
  std::size_t key = first;
  for (; key + 2 * kLanes <= last; key += 2 * kLanes) {
    const F32x16 low = weight_of(key);
    const F32x16 high = weight_of(key + kLanes);
    sum = sum + low + high;
    store_bf16(weights + key, low, high);
  }
  if (key < last) {
    const F32x16 weight = weight_of(key);
    sum = sum + weight;
    store_bf16(weights + key, weight);
  }
  partial[0] = highest * scale;
  partial[1] = fold_sum(sum);
}

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)

// out: [queries], `stride` bytes apart, value_columns floats each
template <int Lefts>
void compute_values(TileScope&, const QueryTile& tile, float* out, std::size_t stride) {
  const AttentionScratch& parts = tile.call.parts;
  for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
    fetch_after_values(tile, keys);
  }
  for (std::size_t column = 0; column < parts.value_columns; column += 16) {
    weigh_values(
        {reinterpret_cast<const std::byte*>(parts.weights(0)) + 2 * tile.first_tile * kKeyTile,
         AttentionScratch::kWeightStride},
        tile.queries, tile.call.sides.values + tile.first_tile, tile.last_tile - tile.first_tile,
        column, {out, stride / sizeof(float)});
  }
}

#else

// Columns [column, column + 16 * Columns) of the weighted values of all queries.
//   tiles: c 0 to 3, left 4 5, right 6 7
template <int Lefts, int... Column>
void add_values(const QueryTile& tile, std::size_t column, float* out, std::size_t stride) {
  (tile_zero<Lefts * Column>(), ...);
  if constexpr (Lefts > 1) (tile_zero<Lefts * Column + 1>(), ...);
  const auto multiply = [&]<int C>(KvTile right) {
    tile_load<6 + C % 2>(right.data + 4 * column + C * kLine, right.stride);
    tile_dpbf16ps<Lefts * C, 4, 6 + C % 2>();
    if constexpr (Lefts > 1) tile_dpbf16ps<Lefts * C + 1, 5, 6 + C % 2>();
  };
  for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
    if (column == 0) fetch_after_values(tile, keys);
    const AttentionScratch& parts = tile.call.parts;
    tile_load<4>(parts.weights(0) + keys * kKeyTile, AttentionScratch::kWeightStride);
    if constexpr (Lefts > 1) {
      tile_load<5>(parts.weights(kTileRows) + keys * kKeyTile, AttentionScratch::kWeightStride);
    }
    (multiply.template operator()<Column>(tile.call.sides.values[keys]), ...);
  }
  const std::size_t floats = stride / sizeof(float);
  (tile_store<Lefts * Column>(out + column + 16 * Column, stride), ...);
  if constexpr (Lefts > 1) {
    (tile_store<Lefts * Column + 1>(out + kTileRows * floats + column + 16 * Column, stride), ...);
  }
}

// out: [queries], `stride` bytes apart, value_columns floats each
template <int Lefts>
void compute_values(TileScope& scope, const QueryTile& tile, float* out, std::size_t stride) {
  AmxTileConfig shapes;
  for (const int c : {0, 1, 2, 3}) shapes.set(c, {tile.rows(c % Lefts), 64});
  for (int left = 0; left < Lefts; ++left) shapes.set(4 + left, {tile.rows(left), 32});
  for (const int right : {6, 7}) shapes.set(right, {8, 64});
  scope.use(shapes);
  const std::size_t columns = tile.call.parts.value_columns;
  std::size_t column = 0;
  if constexpr (Lefts == 1) {
    for (; column + 64 <= columns; column += 64) {
      add_values<Lefts, 0, 1, 2, 3>(tile, column, out, stride);
    }
  }
  for (; column + 32 <= columns; column += 32) add_values<Lefts, 0, 1>(tile, column, out, stride);
  if (column < columns) add_values<Lefts, 0>(tile, column, out, stride);
}

#endif

template <int Lefts>
void attend(const QueryTile& tile, float* partials) {
  const std::size_t value_dim = tile.call.rows.view.layer.layout.value_dim;
  const std::size_t partial_floats = 2 + value_dim;
  TileScope scope;
  load_queries(tile);
  compute_scores<Lefts>(scope, tile);
  cap_scores(tile);
  hide_scores(tile);
  // The maxima of all queries are found before any weight, so that none waits for its maximum.
  float highest[kCallQueries];
  for (std::size_t query = 0; query < tile.queries; ++query) {
    highest[query] = highest_score(tile, query);
  }
  for (std::size_t query = 0; query < tile.queries; ++query) {
    compute_weights(tile, query, highest[query], partials + query * partial_floats);
  }
  if (value_dim == tile.call.parts.value_columns) {
    compute_values<Lefts>(scope, tile, partials + 2, partial_floats * sizeof(float));
    return;
  }
  // Columns that do not exist must not be written.
  const std::size_t columns = tile.call.parts.value_columns;
  float* const sums = tile.call.parts.sums;
  compute_values<Lefts>(scope, tile, sums, columns * sizeof(float));
  for (std::size_t query = 0; query < tile.queries; ++query) {
    __builtin_memcpy(partials + query * partial_floats + 2, sums + query * columns,
                     value_dim * sizeof(float));
  }
}

}  // namespace

std::size_t attention_scratch(std::size_t key_dim, std::size_t value_dim) {
  const AttentionScratch parts(key_dim, value_dim, nullptr);
  return parts.bytes(nullptr);
}

void attend_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                  std::uint64_t split, std::byte* scratch, float* partials) {
  const kv::memory::PageLayout& layout = rows.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  const std::uint64_t last_position = rows.first_position + rows.rows - 1;
  const std::uint64_t begin =
      most(first_visible_key(rows.first_position, job.window), split * kInt8Bf16SplitKeys);
  const std::uint64_t end = least(last_position + 1, (split + 1) * kInt8Bf16SplitKeys);
  if (begin >= end) return;
  const AttentionScratch parts(layout.key_dim, layout.value_dim, scratch);
  const SplitPages pages(rows.view, kv_head, begin, end, parts);
  SplitCall call = {job, rows, kv_head, group, split, parts, {}, {}, 0};
  pages.fill(call.sides);
  if (job.next != nullptr) {
    call.next_tiles = pages.find_keys(*job.next, last_position + 1, call.next_keys, kFetchAhead);
  }
  // Subnormals are flushed only after rows were converted: a subnormal fp16 is a normal float, and
  // some emulators flush it although the instruction ignores the mode.
  const FlushSubnormals flush;
  const std::uint32_t queries = rows.rows * group;
  for (std::uint32_t first = 0; first < queries; first += kCallQueries) {
    const QueryTile tile(call, first, least<std::uint32_t>(kCallQueries, queries - first));
    if (tile.first_tile >= tile.last_tile) continue;
    float* const places = partials + first * (2 + layout.value_dim);
    if (tile.queries <= kTileRows) {
      attend<1>(tile, places);
    } else {
      attend<2>(tile, places);
    }
  }
}

}  // namespace pagoda::kernels::PAGODA_ISA
