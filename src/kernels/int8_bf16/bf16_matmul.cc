// Even-odd reductions: weights that are floats, packed as bf16, in two ways that give the same
// bits:
//
//   few rows    weights are the left-hand side, as they are packed; rows of x the right-hand side.
//               The reading of weights bounds it: each tile is used once.
//   many rows   rows of x are the left-hand side, as they are; weights the right-hand side: a panel
//               of 32 outputs is transposed once and serves all rows.
#include "kernels/int8_bf16/bf16_matmul.h"
#include "kernels/int8_bf16/amx_tile.h"
#include "kernels/int8_bf16/transpose.h"

namespace pagoda::kernels::PAGODA_ISA {
namespace {

using int8_bf16::kTileColumns;
using int8_bf16::kTileRows;
using int8_bf16::PackedWeight;

constexpr std::size_t kTileBytes = 1024;
constexpr std::size_t kLine = 64;  // bytes: a row of a tile

// Without a matrix unit a product with few columns is no cheaper than one with sixteen.
constexpr std::size_t kFewRows = kMultipliesTiles ? 32 : 0;

// The number of outputs, at most 16, of the tile that begins at `first`.
inline std::size_t outputs_from(const Matmul& job, std::size_t first) {
  return job.weight.rows - first < kTileRows ? job.weight.rows - first : kTileRows;
}

// The epilogue of a bf16 GEMM: 16 sums go into a row of y, or are added to it; the first `outputs`
// exist.
[[gnu::always_inline]] inline void put_outputs(const Matmul& job, std::size_t row,
                                               std::size_t first, std::size_t outputs,
                                               const float* sums) {
  float* const y = job.y + row * job.y_stride + first;
  if (outputs == kTileRows) {
    const F32x16 sum = load(sums);
    store(y, job.accumulate ? without_subnormals(without_subnormals(load(y)) + sum) : sum);
    return;
  }
  alignas(64) float all[kTileRows] = {};
  if (job.accumulate) __builtin_memcpy(all, y, outputs * sizeof(float));
  store(all, without_subnormals(without_subnormals(load(all)) + load(sums)));
  __builtin_memcpy(y, job.accumulate ? all : sums, outputs * sizeof(float));
}

// ---- few rows

// Up to 32 rows of x as right-hand sides: [column tile][step][16 pairs][width][2]
struct ColumnTile {
  const std::byte* data;  // of step 0
  std::size_t width;      // rows of x in it
  std::size_t step_bytes() const { return kLine * width; }
};

// One row is its own right-hand side; more are transposed into `scratch`.
ColumnTile column_tile(const Matmul& job, std::size_t steps, std::size_t first_row,
                       std::byte* scratch) {
  const std::size_t width = job.rows - first_row < 16 ? job.rows - first_row : 16;
  const ActivationLayout layout(job.weight.columns);
  const std::size_t stride = layout.halves_stride();
  const std::byte* const x = job.x + layout.halves(first_row);
  if (width == 1) return {x, 1};
  alignas(64) std::byte rows[kTileBytes] = {};
  alignas(64) std::byte columns[kTileBytes];
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t row = 0; row < width; ++row) {
      __builtin_memcpy(rows + row * kLine, x + row * stride + step * kLine, kLine);
    }
    transpose_words(rows, kLine, columns, kLine);
    for (std::size_t pair = 0; pair < 16; ++pair) {
      __builtin_memcpy(scratch + (step * 16 + pair) * 4 * width, columns + pair * kLine, 4 * width);
    }
  }
  return {scratch, width};
}

template <int RowTiles, int ColumnTiles>
struct FewRows {
  const Matmul& job;
  const PackedWeight& weight;
  const ColumnTile* columns;

  template <int R>
  [[gnu::always_inline]] void multiply_row_tile(std::size_t row_tile, std::size_t step) const {
    tile_load<4 + R % 2>(weight.tile(row_tile + R, step).codes, kLine);
    tile_dpbf16ps<R * ColumnTiles, 4 + R % 2, 6>();
    if constexpr (ColumnTiles == 2) tile_dpbf16ps<R * 2 + 1, 4 + R % 2, 7>();
  }
  [[gnu::always_inline]] void multiply(std::size_t row_tile, std::size_t step) const {
    tile_load<6>(columns[0].data + step * columns[0].step_bytes(), 4 * columns[0].width);
    if constexpr (ColumnTiles == 2) {
      tile_load<7>(columns[1].data + step * columns[1].step_bytes(), 4 * columns[1].width);
    }
    multiply_row_tile<0>(row_tile, step);
    if constexpr (RowTiles > 1) multiply_row_tile<1>(row_tile, step);
    if constexpr (RowTiles > 2) multiply_row_tile<2>(row_tile, step);
    if constexpr (RowTiles > 3) multiply_row_tile<3>(row_tile, step);
  }

  // c: [16 outputs][width]
  template <int C>
  void put(std::size_t row_tile) const {
    const ColumnTile& column = columns[C % ColumnTiles];
    const std::size_t first = (row_tile + C / ColumnTiles) * kTileRows;
    const std::size_t outputs = outputs_from(job, first);
    const std::size_t first_row = C % ColumnTiles * 16;
    alignas(64) float sums[256];
    if (column.width == 1) {
      tile_store<C>(sums, sizeof(float));
      put_outputs(job, first_row, first, outputs, sums);
      return;
    }
    alignas(64) float by_row[256];
    tile_store<C>(sums, kLine);
    transpose_words(sums, kLine, by_row, kLine);
    for (std::size_t row = 0; row < column.width; ++row) {
      put_outputs(job, first_row + row, first, outputs, by_row + 16 * row);
    }
  }

  void run(std::size_t row_tile) const {
    tile_zero<0>();
    if constexpr (RowTiles * ColumnTiles > 1) tile_zero<1>();
    if constexpr (RowTiles * ColumnTiles > 2) tile_zero<2>();
    if constexpr (RowTiles * ColumnTiles > 3) tile_zero<3>();
    for (std::size_t step = 0; step < weight.groups; ++step) {
      weight.prefetch(row_tile, step, RowTiles);
      multiply(row_tile, step);
    }
    put<0>(row_tile);
    if constexpr (RowTiles * ColumnTiles > 1) put<1>(row_tile);
    if constexpr (RowTiles * ColumnTiles > 2) put<2>(row_tile);
    if constexpr (RowTiles * ColumnTiles > 3) put<3>(row_tile);
  }
};

template <int ColumnTiles>
void multiply_few(const Matmul& job, const PackedWeight& weight, const ColumnTile* columns,
                  std::size_t begin, std::size_t end) {
  constexpr int kTogether = ColumnTiles == 1 ? 4 : 2;
  std::size_t row_tile = begin;
  for (; row_tile + kTogether <= end; row_tile += kTogether) {
    FewRows<kTogether, ColumnTiles>{job, weight, columns}.run(row_tile);
  }
  if constexpr (kTogether == 4) {
    if (row_tile + 2 <= end) {
      FewRows<2, ColumnTiles>{job, weight, columns}.run(row_tile);
      row_tile += 2;
    }
  }
  if (row_tile < end) {
    FewRows<1, ColumnTiles>{job, weight, columns}.run(row_tile);
  }
}

void matmul_few(const Matmul& job, const PackedWeight& weight, std::size_t begin, std::size_t end,
                std::byte* scratch) {
  ColumnTile columns[2] = {column_tile(job, weight.groups, 0, scratch), {}};
  if (job.rows > 16) {
    columns[1] = column_tile(job, weight.groups, 16, scratch + weight.groups * kTileBytes);
  }
  AmxTileConfig shapes;
  for (int i = 0; i < 4; ++i) {
    const ColumnTile& column = columns[job.rows > 16 ? i % 2 : 0];
    shapes.set(i, {16, static_cast<std::uint8_t>(4 * column.width)});
  }
  shapes.set(4, {16, 64});
  shapes.set(5, {16, 64});
  shapes.set(6, {16, static_cast<std::uint8_t>(4 * columns[0].width)});
  if (job.rows > 16) shapes.set(7, {16, static_cast<std::uint8_t>(4 * columns[1].width)});
  TileScope scope;
  scope.use(shapes);
  if (job.rows > 16) return multiply_few<2>(job, weight, columns, begin, end);
  multiply_few<1>(job, weight, columns, begin, end);
}

// ---- many rows

// Row tile `row_tile` of the weight as right-hand sides: tile [step][2] of `panel`, from `side` on.
void fill_panel(const PackedWeight& weight, std::size_t row_tile, int side, std::byte* panel) {
  for (std::size_t step = 0; step < weight.groups; ++step) {
    transpose_words(weight.tile(row_tile, step).codes, kLine,
                    panel + (2 * step + side) * kTileBytes, kLine);
  }
}

// Rows [row, row + 32) or fewer of x with one panel of up to 32 outputs.
//
//   tiles   c: 0 1    left: 4    right: 6 7
//              2 3          5
template <bool SecondRows, bool SecondOutputs>
void multiply_block(const Matmul& job, std::size_t steps, std::size_t row, const std::byte* panel) {
  const ActivationLayout layout(job.weight.columns);
  const std::size_t stride = layout.halves_stride();
  const std::byte* const x = job.x + layout.halves(row);
  tile_zero<0>();
  if constexpr (SecondOutputs) tile_zero<1>();
  if constexpr (SecondRows) tile_zero<2>();
  if constexpr (SecondRows && SecondOutputs) tile_zero<3>();
  for (std::size_t step = 0; step < steps; ++step) {
    tile_load<4>(x + step * kLine, stride);
    tile_load<6>(panel + 2 * step * kTileBytes, kLine);
    tile_dpbf16ps<0, 4, 6>();
    if constexpr (SecondOutputs) {
      tile_load<7>(panel + (2 * step + 1) * kTileBytes, kLine);
      tile_dpbf16ps<1, 4, 7>();
    }
    if constexpr (SecondRows) {
      tile_load<5>(x + layout.block_bytes() + step * kLine, stride);
      tile_dpbf16ps<2, 5, 6>();
      if constexpr (SecondOutputs) tile_dpbf16ps<3, 5, 7>();
    }
  }
}

template <int C>
void put_tile(const Matmul& job, std::size_t row, std::size_t rows, std::size_t first) {
  const std::size_t outputs = outputs_from(job, first);
  if (!job.accumulate && outputs == kTileRows) {
    tile_store<C>(job.y + row * job.y_stride + first, job.y_stride * sizeof(float));
    return;
  }
  alignas(64) float sums[256];
  tile_store<C>(sums, kLine);
  for (std::size_t i = 0; i < rows; ++i) put_outputs(job, row + i, first, outputs, sums + 16 * i);
}

template <bool SecondRows, bool SecondOutputs>
void multiply_and_put(const Matmul& job, std::size_t steps, std::size_t row, std::size_t rows,
                      std::size_t first, const std::byte* panel) {
  multiply_block<SecondRows, SecondOutputs>(job, steps, row, panel);
  const std::size_t rows_above = SecondRows ? 16 : rows;
  put_tile<0>(job, row, rows_above, first);
  if constexpr (SecondOutputs) put_tile<1>(job, row, rows_above, first + 16);
  if constexpr (SecondRows) put_tile<2>(job, row + 16, rows - 16, first);
  if constexpr (SecondRows && SecondOutputs) put_tile<3>(job, row + 16, rows - 16, first + 16);
}

AmxTileConfig shapes_of_rows(std::size_t rows) {
  const auto above = static_cast<std::uint8_t>(rows < 16 ? rows : 16);
  const auto below = static_cast<std::uint8_t>(rows < 16 ? 0 : rows - 16);
  AmxTileConfig shapes;
  for (const int tile : {0, 1, 4}) shapes.set(tile, {above, 64});
  if (below > 0) {
    for (const int tile : {2, 3, 5}) shapes.set(tile, {below, 64});
  }
  shapes.set(6, {16, 64});
  shapes.set(7, {16, 64});
  return shapes;
}

template <bool SecondOutputs>
void multiply_panel(TileScope& scope, const Matmul& job, std::size_t steps, std::size_t first,
                    const std::byte* panel) {
  const std::size_t whole = job.rows / 32 * 32;
  if (whole > 0) {
    scope.use(shapes_of_rows(32));
    for (std::size_t row = 0; row < whole; row += 32) {
      multiply_and_put<true, SecondOutputs>(job, steps, row, 32, first, panel);
    }
  }
  const std::size_t rest = job.rows - whole;
  if (rest == 0) return;
  scope.use(shapes_of_rows(rest));
  if (rest > 16) {
    multiply_and_put<true, SecondOutputs>(job, steps, whole, rest, first, panel);
  } else {
    multiply_and_put<false, SecondOutputs>(job, steps, whole, rest, first, panel);
  }
}

void matmul_many(const Matmul& job, const PackedWeight& weight, std::size_t begin, std::size_t end,
                 std::byte* scratch) {
  TileScope scope;
  for (std::size_t row_tile = begin; row_tile < end; row_tile += 2) {
    const bool second = row_tile + 1 < end;
    fill_panel(weight, row_tile, 0, scratch);
    if (second) fill_panel(weight, row_tile + 1, 1, scratch);
    if (second) {
      multiply_panel<true>(scope, job, weight.groups, row_tile * kTileRows, scratch);
    } else {
      multiply_panel<false>(scope, job, weight.groups, row_tile * kTileRows, scratch);
    }
  }
}

}  // namespace

std::size_t bf16_scratch(std::size_t columns) {
  const std::size_t steps = (columns + kTileColumns - 1) / kTileColumns;
  return 2 * steps * kTileBytes;
}

void multiply_bf16(const Matmul& job, const PackedWeight& weight, std::size_t begin,
                   std::size_t end, std::byte* scratch) {
  const FlushSubnormals flush;
  if (job.rows <= kFewRows) return matmul_few(job, weight, begin, end, scratch);
  matmul_many(job, weight, begin, end, scratch);
}

}  // namespace pagoda::kernels::PAGODA_ISA
