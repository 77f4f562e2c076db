// Attention over keys or values that are integers (kernels/ops.h): scores and weighted values of up
// to 32 queries in one split.
#pragma once

#include "kernels/int8_bf16/amx_tile.h"
#include "kernels/int8_bf16/attention_call.h"
#include "kernels/int8_bf16/int_rows.h"
#if defined(__AVX2__) || defined(__ARM_FEATURE_MATMUL_INT8)
#include "kernels/int8_bf16/int_products.h"
#endif

namespace pagoda::kernels::PAGODA_ISA {

inline void load_int_queries(const QueryBlock& tile) {
  const AttentionScratch& parts = tile.call.parts;
  for_each_query(tile, [&](std::size_t query, const float* q, std::size_t dimensions) {
    std::byte* const row =
        reinterpret_cast<std::byte*>(parts.queries) + query * parts.query_stride();
    parts.query_scales[query] = put_query(q, dimensions, row);
  });
}

// Groups of dimensions, or of columns of values, that share a scale.
struct IntGroups {
  std::size_t count;
  std::size_t size;
};
// A row of one scale is one group, filled up with zeros.
inline IntGroups key_groups(const QueryBlock& tile) {
  const kv::memory::PageLayout& layout = tile.call.rows.view.layer.layout;
  if (layout.elements.keys == kv::memory::Element::kInt8) {
    return {1, tile.call.parts.k_blocks * kBlockK};
  }
  return {layout.key_dim / kv::memory::kScaleGroup, kv::memory::kScaleGroup};
}
inline IntGroups value_groups(const QueryBlock& tile) {
  const kv::memory::PageLayout& layout = tile.call.rows.view.layer.layout;
  if (layout.elements.values == kv::memory::Element::kInt8) {
    return {1, tile.call.parts.value_columns};
  }
  return {layout.value_dim / kv::memory::kScaleGroup, kv::memory::kScaleGroup};
}

// Scores of tile `keys` times the scales of queries.
inline void scale_scores(const QueryBlock& tile, std::size_t keys) {
  const AttentionScratch& parts = tile.call.parts;
  for (std::size_t query = 0; query < tile.queries; ++query) {
    float* const scores = parts.scores + query * kInt8Bf16SplitKeys + keys * kKeyTile;
    const F32x16 scale = broadcast(parts.query_scales[query]);
    store(scores, without_subnormals(load(scores) * scale));
  }
}

// Scores of one query to weights in their place. partial: maximum, sum of weights
inline void compute_float_weights(const QueryBlock& tile, std::size_t query, float highest,
                                  float* partial) {
  float* const scores = tile.call.parts.scores + query * kInt8Bf16SplitKeys;
  const float scale = tile.call.attention.softmax_scale();
  const float power = scale * exp_steps::kLog2E;
  const F32x16 powers = broadcast(power);
  const F32x16 shift = broadcast(highest == kNothing ? 0.0f : -(highest * power));
  F32x16 sum = broadcast(0.0f);
  const std::size_t last = tile.last_tile * kKeyTile;
  for (std::size_t key = tile.first_tile * kKeyTile; key < last; key += kLanes) {
    const F32x16 weight = power_of_two(fma(load(scores + key), powers, shift));
    sum = sum + weight;
    store(scores + key, weight);
  }
  partial[0] = highest * scale;
  partial[1] = fold_sum(sum);
}

// Weights of one query times the scales of a group of values, as integers. Returns what an integer
// stands for.
inline float put_int_weights(const QueryBlock& tile, std::size_t query, std::size_t group) {
  const AttentionScratch& parts = tile.call.parts;
  const float* const weights = parts.scores + query * kInt8Bf16SplitKeys;
  const float* const scales = parts.value_scales + group * kInt8Bf16SplitKeys;
  const auto scaled = [&](std::size_t keys) {
    return without_subnormals(load(weights + keys * kKeyTile) * load(scales + keys * kKeyTile));
  };
  F32x16 most_of = broadcast(0.0f);
  for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
    most_of = max(scaled(keys), most_of);
  }
  const float largest = fold_max(most_of);
  const bool usable = largest >= kValueWeightSmallest;
  const F32x16 inverse = broadcast(usable ? static_cast<float>(kValueWeightMax) / largest : 0.0f);
  std::byte* const to = parts.int_weights + query * AttentionScratch::kIntWeightStride;
  for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
    put_weights(scaled(keys) * inverse, to + keys * kWeightTileBytes);
  }
  return usable ? largest / static_cast<float>(kValueWeightMax) : 0.0f;
}

// Columns of values: [begin, end), multiples of 16.
struct ColumnRange {
  std::size_t begin;
  std::size_t end;
};

#if defined(__AVX2__) || defined(__ARM_FEATURE_MATMUL_INT8)

// Up to so many queries are multiplied by rows (int_products.h), more by tiles. A matrix unit loads
// and stores its tiles for 16 keys, whatever the number of queries: those of one token, heads of
// one KV head, are done in one pass of rows before. Sums are exact either way.
inline constexpr std::size_t kQueriesByRows = kMultipliesTiles ? 4 : kCallQueries;

[[gnu::noinline]] inline void score_by_rows(const QueryBlock& tile) {
  const AttentionScratch& parts = tile.call.parts;
  const auto* const queries = reinterpret_cast<const std::byte*>(parts.queries);
  const IntGroups groups = key_groups(tile);
  for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
    fetch_after_keys(tile, keys);
    const KvTile right = tile.call.sides.keys[keys];
    for (std::size_t group = 0; group < groups.count; ++group) {
      const std::size_t first = group * groups.size;
      score_ints({queries + query_offset(first), parts.query_stride()}, tile.queries, groups.size,
                 {right.data + first / 4 * right.stride, right.stride},
                 {parts.key_scales + group * kInt8Bf16SplitKeys + keys * kKeyTile, group == 0},
                 {parts.scores + keys * kKeyTile, kInt8Bf16SplitKeys});
    }
    scale_scores(tile, keys);
  }
}

// out: as sum_int_values()
[[gnu::noinline]] inline void weigh_by_rows(const QueryBlock& tile, ColumnRange columns, float* out,
                                            std::size_t stride) {
  const LeftInts weights = {tile.call.parts.int_weights + tile.first_tile * kWeightTileBytes,
                            AttentionScratch::kIntWeightStride};
  for (std::size_t column = columns.begin; column < columns.end; column += 16) {
    weigh_ints(weights, tile.queries, tile.call.sides.values + tile.first_tile,
               tile.last_tile - tile.first_tile, column, {out + column, stride / sizeof(float)});
  }
}

#else

inline constexpr std::size_t kQueriesByRows = 0;
inline void score_by_rows(const QueryBlock&) {}
inline void weigh_by_rows(const QueryBlock&, ColumnRange, float*, std::size_t) {}

#endif

// 16 sums of each query as the nearest floats: high limbs stand in parts.highs, low ones in
// parts.lows. Calls use(query, sums).
template <class Use>
inline void join_limbs(const QueryBlock& tile, Use use) {
  for (std::size_t query = 0; query < tile.queries; ++query) {
    const F32x16 high = load_ints(tile.call.parts.highs + query * 16);
    const F32x16 low = load_ints(tile.call.parts.lows + query * 16);
    use(query, fma(high, broadcast(static_cast<float>(kLimbBase)), low));
  }
}

// Shapes of tiles: sums 0 1 of high limbs and 2 3 of low ones, left 4 5, right 6.
template <int Lefts>
void use_int_tiles(TileScope& scope, const QueryBlock& tile, AmxTileShape right) {
  const auto left_bytes = static_cast<std::uint8_t>(4 * right.rows);
  AmxTileConfig shapes;
  for (int left = 0; left < Lefts; ++left) {
    for (const int sums : {left, 2 + left}) shapes.set(sums, {tile.rows(left), 64});
    shapes.set(4 + left, {tile.rows(left), left_bytes});
  }
  shapes.set(6, right);
  scope.use(shapes);
}
template <int Lefts>
void clear_int_tiles() {
  tile_zero<0>();
  tile_zero<2>();
  if constexpr (Lefts > 1) {
    tile_zero<1>();
    tile_zero<3>();
  }
}
// High limbs to parts.highs, low ones to parts.lows.
template <int Lefts>
void store_int_tiles(const QueryBlock& tile) {
  std::int32_t* const highs = tile.call.parts.highs;
  std::int32_t* const lows = tile.call.parts.lows;
  tile_store<0>(highs, kLine);
  tile_store<2>(lows, kLine);
  if constexpr (Lefts > 1) {
    tile_store<1>(highs + kTileRows * 16, kLine);
    tile_store<3>(lows + kTileRows * 16, kLine);
  }
}

// Sums of a group of dimensions from `first` on with 16 keys.
template <int Lefts>
void multiply_key_group(const QueryBlock& tile, KvTile right, std::size_t first, std::size_t size) {
  const AttentionScratch& parts = tile.call.parts;
  const std::size_t stride = parts.query_stride();
  clear_int_tiles<Lefts>();
  for (std::size_t dimension = first; dimension < first + size; dimension += kBlockK) {
    const std::byte* const high =
        reinterpret_cast<const std::byte*>(parts.queries) + query_offset(dimension);
    const std::byte* const low = high + kBlockK;
    tile_load<6>(right.data + dimension / 4 * right.stride, right.stride);
    tile_load<4>(high, stride);
    tile_dpbssd<0, 4, 6>();
    tile_load<4>(low, stride);
    tile_dpbssd<2, 4, 6>();
    if constexpr (Lefts > 1) {
      tile_load<5>(high + kTileRows * stride, stride);
      tile_dpbssd<1, 5, 6>();
      tile_load<5>(low + kTileRows * stride, stride);
      tile_dpbssd<3, 5, 6>();
    }
  }
  store_int_tiles<Lefts>(tile);
}

template <int Lefts>
[[gnu::noinline]] void score_by_tiles(TileScope& scope, const QueryBlock& tile) {
  const AttentionScratch& parts = tile.call.parts;
  const IntGroups groups = key_groups(tile);
  const std::size_t rows = least(groups.size, kBlockK) / 4;
  use_int_tiles<Lefts>(scope, tile, {static_cast<std::uint8_t>(rows), 64});
  for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
    fetch_after_keys(tile, keys);
    for (std::size_t group = 0; group < groups.count; ++group) {
      multiply_key_group<Lefts>(tile, tile.call.sides.keys[keys], group * groups.size, groups.size);
      const F32x16 scales = load(parts.key_scales + group * kInt8Bf16SplitKeys + keys * kKeyTile);
      join_limbs(tile, [&](std::size_t query, const F32x16& sums) {
        float* const scores = parts.scores + query * kInt8Bf16SplitKeys + keys * kKeyTile;
        const F32x16 scaled = group == 0 ? sums * scales : fma(sums, scales, load(scores));
        store(scores, without_subnormals(scaled));
      });
    }
    scale_scores(tile, keys);
  }
}

template <int Lefts>
void compute_int_scores(TileScope& scope, const QueryBlock& tile) {
  if (tile.queries <= kQueriesByRows) return score_by_rows(tile);
  if constexpr (kMultipliesTiles) score_by_tiles<Lefts>(scope, tile);
}

// out: [queries], `stride` bytes apart, value_columns floats each: sums, not yet scaled
template <int Lefts>
void sum_int_values(const QueryBlock& tile, ColumnRange columns, float* out, std::size_t stride) {
  constexpr std::size_t kStride = AttentionScratch::kIntWeightStride;
  const AttentionScratch& parts = tile.call.parts;
  for (std::size_t column = columns.begin; column < columns.end; column += 16) {
    clear_int_tiles<Lefts>();
    for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
      if (column == 0) fetch_after_values(tile, keys);
      const KvTile right = tile.call.sides.values[keys];
      const std::byte* const high = parts.int_weights + keys * kWeightTileBytes;
      const std::byte* const low = high + 16;
      tile_load<6>(right.data + 4 * column, right.stride);
      tile_load<4>(high, kStride);
      tile_dpbusd<0, 4, 6>();
      tile_load<4>(low, kStride);
      tile_dpbusd<2, 4, 6>();
      if constexpr (Lefts > 1) {
        tile_load<5>(high + kTileRows * kStride, kStride);
        tile_dpbusd<1, 5, 6>();
        tile_load<5>(low + kTileRows * kStride, kStride);
        tile_dpbusd<3, 5, 6>();
      }
    }
    store_int_tiles<Lefts>(tile);
    join_limbs(tile, [&](std::size_t query, const F32x16& sums) {
      store(out + query * (stride / sizeof(float)) + column, sums);
    });
  }
}

// The values of a split by the weights that stand in the place of scores.
template <int Lefts>
[[gnu::noinline]] void compute_int_values(TileScope& scope, const QueryBlock& tile, float* out,
                                          std::size_t stride) {
  const IntGroups groups = value_groups(tile);
  const bool by_rows = tile.queries <= kQueriesByRows;
  if (by_rows) {
    for (std::size_t keys = tile.first_tile; keys < tile.last_tile; ++keys) {
      fetch_after_values(tile, keys);
    }
  } else if constexpr (kMultipliesTiles) {
    use_int_tiles<Lefts>(scope, tile, {4, 64});
  }
  for (std::size_t group = 0; group < groups.count; ++group) {
    const ColumnRange columns = {group * groups.size, (group + 1) * groups.size};
    float steps[kCallQueries];
    for (std::size_t query = 0; query < tile.queries; ++query) {
      steps[query] = put_int_weights(tile, query, group);
    }
    if (by_rows) {
      weigh_by_rows(tile, columns, out, stride);
    } else if constexpr (kMultipliesTiles) {
      sum_int_values<Lefts>(tile, columns, out, stride);
    }
    for (std::size_t query = 0; query < tile.queries; ++query) {
      float* const row = out + query * (stride / sizeof(float));
      for (std::size_t column = columns.begin; column < columns.end; column += kLanes) {
        store(row + column, without_subnormals(load(row + column) * broadcast(steps[query])));
      }
    }
  }
}

}  // namespace pagoda::kernels::PAGODA_ISA
