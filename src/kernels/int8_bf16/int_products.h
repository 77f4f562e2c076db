// Exact products with integers of the cache, by what the CPU has for them: rows of queries with 16
// keys, and rows of weights with 16 columns of values. Sums come out as the nearest floats.
//
// A set has score_rows<Rows> and weigh_rows<Rows> for up to kIntRows rows.
#pragma once

#include <cstddef>

namespace pagoda::kernels::PAGODA_ISA {

// Rows as int_rows.h puts them, `stride` bytes apart.
struct LeftInts {
  const std::byte* data;
  std::size_t stride;

  const std::byte* row(std::size_t index) const { return data + index * stride; }
  LeftInts from(std::size_t index) const { return {row(index), stride}; }
};
// The scales of 16 keys for one group of dimensions; sums of later groups are added to the first's.
struct KeyScales {
  const float* scales;
  bool first;
};
struct OutFloats {
  float* data;
  std::size_t stride;  // floats

  OutFloats from(std::size_t row) const { return {data + row * stride, stride}; }
};

}  // namespace pagoda::kernels::PAGODA_ISA

#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "kernels/int8_bf16/int_products_neon.h"
#else
#include "kernels/int8_bf16/int_products_avx.h"
#endif

namespace pagoda::kernels::PAGODA_ISA {

// Calls use<Rows>(first row) for all rows.
template <int Rows = kIntRows, class Use>
[[gnu::always_inline]] inline void for_int_rows(std::size_t rows, Use use, std::size_t row = 0) {
  for (; rows - row >= Rows; row += Rows) use.template operator()<Rows>(row);
  if constexpr (Rows > 1) for_int_rows<Rows - 1>(rows, use, row);
}

// out[row][16]: sums over a group of `dimensions` dimensions (32, or a multiple of 64) times the
// scales of 16 keys, added to what stands there unless the group is the first.
inline void score_ints(LeftInts queries, std::size_t rows, std::size_t dimensions, KvTile keys,
                       KeyScales scales, OutFloats out) {
  for_int_rows(rows, [&]<int Rows>(std::size_t row) {
    score_rows<Rows>(queries.from(row), dimensions, keys, scales, out.from(row));
  });
}

// out[row][16]: sums of columns [column, column + 16) over the keys of all tiles.
inline void weigh_ints(LeftInts weights, std::size_t rows, const KvTile* values, std::size_t tiles,
                       std::size_t column, OutFloats out) {
  for_int_rows(rows, [&]<int Rows>(std::size_t row) {
    weigh_rows<Rows>(weights.from(row), values, tiles, column, out.from(row));
  });
}

}  // namespace pagoda::kernels::PAGODA_ISA
