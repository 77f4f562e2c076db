// Attention by tiles: 16 or 32 queries (heads of one KV head, of one or several tokens) with 16
// keys at a time. The scores of a whole split are computed first, then its weights, then its
// values, so that nothing is ever rescaled within a split. A call takes many tiles of queries
// through one split: its keys and values come from memory once.
#include "kernels/int8_bf16/amx_tile.h"
#include "kernels/int8_bf16/attention_call.h"
#include "kernels/int8_bf16/attention_ints.h"
#include "kernels/int8_bf16/kernels.h"
#include "kernels/int8_bf16/round.h"
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include "kernels/int8_bf16/attention_neon.h"
#endif

namespace pagoda::kernels::PAGODA_ISA {
namespace {

void load_queries(const QueryBlock& tile) {
  const AttentionScratch& parts = tile.call.parts;
  const std::size_t width = parts.steps * kStepDimensions;
  for_each_query(tile, [&](std::size_t query, const float* q, std::size_t dimensions) {
    std::uint16_t* const row = parts.queries + query * width;
    round_row(q, dimensions, row);
    __builtin_memset(row + dimensions, 0, 2 * (width - dimensions));
  });
}

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)

// scores[query][key] for every tile of keys.
template <int Lefts>
[[gnu::noinline]] void compute_scores(TileScope&, const QueryBlock& tile) {
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
[[gnu::noinline]] void compute_scores(TileScope& scope, const QueryBlock& tile) {
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
void hide_scores(const QueryBlock& tile) {
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

void cap_scores(const QueryBlock& tile) {
  const Attention& attention = tile.call.attention;
  for (std::size_t query = 0; query < tile.queries && attention.cap > 0; ++query) {
    float* const scores = tile.call.parts.scores + query * kInt8Bf16SplitKeys;
    soft_cap(scores + tile.first_tile * kKeyTile, (tile.last_tile - tile.first_tile) * kKeyTile,
             attention.scale, attention.cap);
  }
}

// The highest score of one query.
float highest_score(const QueryBlock& tile, std::size_t query) {
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
void compute_weights(const QueryBlock& tile, std::size_t query, float highest, float* partial) {
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
[[gnu::noinline]] void compute_values(TileScope&, const QueryBlock& tile, float* out,
                                      std::size_t stride) {
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
void add_values(const QueryBlock& tile, std::size_t column, float* out, std::size_t stride) {
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
[[gnu::noinline]] void compute_values(TileScope& scope, const QueryBlock& tile, float* out,
                                      std::size_t stride) {
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

// Scores of all queries with the keys that any of them sees, capped where the model does that. The
// products it calls are not inlined: GCC 12 keeps their sums in memory where one function has those
// of floats and those of integers.
template <int Lefts>
void score(TileScope& scope, const QueryBlock& tile) {
  if (is_integer(tile.call.rows.view.layer.layout.elements.keys)) {
    load_int_queries(tile);
    compute_int_scores<Lefts>(scope, tile);
  } else {
    load_queries(tile);
    compute_scores<Lefts>(scope, tile);
  }
  cap_scores(tile);
}

template <int Lefts>
void attend(const QueryBlock& tile, float* partials) {
  const kv::memory::PageLayout& layout = tile.call.rows.view.layer.layout;
  const std::size_t partial_floats = 2 + layout.value_dim;
  const bool int_values = is_integer(layout.elements.values);
  TileScope scope;
  score<Lefts>(scope, tile);
  hide_scores(tile);
  // The maxima of all queries are found before any weight, so that none waits for its maximum.
  float highest[kCallQueries];
  for (std::size_t query = 0; query < tile.queries; ++query) {
    highest[query] = highest_score(tile, query);
  }
  for (std::size_t query = 0; query < tile.queries; ++query) {
    float* const partial = partials + query * partial_floats;
    if (int_values) {
      compute_float_weights(tile, query, highest[query], partial);
    } else {
      compute_weights(tile, query, highest[query], partial);
    }
  }
  // Columns that do not exist must not be written.
  const std::size_t columns = tile.call.parts.value_columns;
  const bool in_place = layout.value_dim == columns;
  float* const out = in_place ? partials + 2 : tile.call.parts.sums;
  const std::size_t stride = (in_place ? partial_floats : columns) * sizeof(float);
  if (int_values) {
    compute_int_values<Lefts>(scope, tile, out, stride);
  } else {
    compute_values<Lefts>(scope, tile, out, stride);
  }
  for (std::size_t query = 0; !in_place && query < tile.queries; ++query) {
    __builtin_memcpy(partials + query * partial_floats + 2, out + query * columns,
                     layout.value_dim * sizeof(float));
  }
}

// Writes the scores of all queries to their rows.
template <int Lefts>
void score_rows(const QueryBlock& tile, ScoreRows out) {
  {
    TileScope scope;
    score<Lefts>(scope, tile);
  }
  const F32x16 scale = broadcast(tile.call.attention.softmax_scale());
  const std::size_t first_key = tile.call.split * kInt8Bf16SplitKeys;
  for (std::size_t query = 0; query < tile.queries; ++query) {
    const float* const scores = tile.call.parts.scores + query * kInt8Bf16SplitKeys;
    float* const row = out.data + (tile.first_query + query) * out.stride + first_key;
    for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
      store(row + keys * kKeyTile, without_subnormals(load(scores + keys * kKeyTile) * scale));
    }
  }
}

// Calls use(block) for blocks of queries that see keys of the split.
template <class Use>
void for_query_blocks(const Attention& job, const AttentionRows& rows, KeySplit keys,
                      std::byte* scratch, bool with_values, Use use) {
  const kv::memory::PageLayout& layout = rows.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  const std::uint64_t last_position = rows.first_position + rows.rows - 1;
  const std::uint64_t begin =
      most(first_visible_key(job, rows.first_position), keys.split * kInt8Bf16SplitKeys);
  const std::uint64_t end =
      least(visible_keys_end(job, last_position), (keys.split + 1) * kInt8Bf16SplitKeys);
  if (begin >= end) return;
  const AttentionScratch parts(layout.key_dim, layout.value_dim, scratch);
  const SplitPages pages(rows.view, keys.kv_head, begin, end, parts);
  const std::size_t key_lines = layout.key_dim / kv::memory::run_units(layout.elements.keys);
  const std::size_t value_lines =
      with_values ? parts.value_columns / kv::memory::run_units(layout.elements.values) : 0;
  SplitCall call = {job,       rows,        keys.kv_head, group, keys.split, parts,
                    key_lines, value_lines, {},           {},    0};
  pages.fill(call.sides, with_values);
  if (job.next != nullptr) {
    call.next_tiles = pages.find_keys(*job.next, last_position + 1, call.next_keys, kFetchAhead);
  }
  // Subnormals are flushed only after rows were converted: a subnormal fp16 is a normal float, and
  // some emulators flush it although the instruction ignores the mode.
  const FlushSubnormals flush;
  const std::uint32_t queries = rows.rows * group;
  for (std::uint32_t first = 0; first < queries; first += kCallQueries) {
    const QueryBlock tile(call, first, least<std::uint32_t>(kCallQueries, queries - first));
    if (tile.first_tile < tile.last_tile) use(tile);
  }
}

}  // namespace

std::size_t attention_scratch(std::size_t key_dim, std::size_t value_dim) {
  return AttentionScratch(key_dim, value_dim, nullptr).bytes;
}

void attend_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                  std::uint64_t split, std::byte* scratch, float* partials) {
  const std::size_t partial_floats = 2 + rows.view.layer.layout.value_dim;
  for_query_blocks(job, rows, {kv_head, split}, scratch, true, [&](const QueryBlock& tile) {
    float* const places = partials + tile.first_query * partial_floats;
    if (tile.queries <= kTileRows) {
      attend<1>(tile, places);
    } else {
      attend<2>(tile, places);
    }
  });
}

void score_split(const Attention& job, const AttentionRows& rows, std::uint32_t kv_head,
                 std::uint64_t split, std::byte* scratch, ScoreRows scores) {
  for_query_blocks(job, rows, {kv_head, split}, scratch, false, [&](const QueryBlock& tile) {
    if (tile.queries <= kTileRows) {
      score_rows<1>(tile, scores);
    } else {
      score_rows<2>(tile, scores);
    }
  });
}

}  // namespace pagoda::kernels::PAGODA_ISA
