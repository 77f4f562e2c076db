// y = x w^T. A panel of 16 weight rows is unpacked to floats once (it stays in the first-level
// cache for common widths), then tiles of up to 3 rows of x by 4 of the panel keep their 8-lane
// reductions in registers. One row and many rows run the same sums in the same order.
#include <algorithm>

#include "kernels/fp32/f32x8.h"
#include "kernels/fp32/kernels.h"

namespace pagoda::kernels::fp32 {
namespace {

constexpr std::size_t kPanel = 16;  // weight rows
constexpr std::size_t kRowsPerTile = 3;
constexpr std::size_t kOutputsPerTile = 4;

// sums[r][n] = 8-lane reduction of x row r times w row n
template <std::size_t Rows, std::size_t Outputs>
void lane_reductions(const float* x, std::size_t x_stride, const float* w, std::size_t columns,
                     float (&sums)[kRowsPerTile][kOutputsPerTile]) {
  F32x8 lanes[Rows][Outputs];
  PAGODA_UNROLL for (std::size_t r = 0; r < Rows; ++r) {
    PAGODA_UNROLL for (std::size_t n = 0; n < Outputs; ++n) lanes[r][n] = broadcast(0.0f);
  }
  const std::size_t whole = columns / kLanes * kLanes;
  for (std::size_t k = 0; k < whole; k += kLanes) {
    F32x8 inputs[Rows];
    PAGODA_UNROLL for (std::size_t r = 0; r < Rows; ++r) inputs[r] = load(x + r * x_stride + k);
    PAGODA_UNROLL for (std::size_t n = 0; n < Outputs; ++n) {
      const F32x8 weight = load(w + n * columns + k);
      PAGODA_UNROLL for (std::size_t r = 0; r < Rows; ++r) {
        lanes[r][n] = fma(inputs[r], weight, lanes[r][n]);
      }
    }
  }
  PAGODA_UNROLL for (std::size_t r = 0; r < Rows; ++r) {
    PAGODA_UNROLL for (std::size_t n = 0; n < Outputs; ++n) {
      sums[r][n] = fold_with_tail(lanes[r][n], x + r * x_stride + whole, w + n * columns + whole,
                                  columns - whole);
    }
  }
}

template <std::size_t Outputs>
void lane_reductions_of_rows(std::size_t rows, const float* x, std::size_t x_stride, const float* w,
                             std::size_t columns, float (&sums)[kRowsPerTile][kOutputsPerTile]) {
  switch (rows) {
    case 1:
      return lane_reductions<1, Outputs>(x, x_stride, w, columns, sums);
    case 2:
      return lane_reductions<2, Outputs>(x, x_stride, w, columns, sums);
    default:
      return lane_reductions<3, Outputs>(x, x_stride, w, columns, sums);
  }
}

// Outputs [first, first + outputs) of all rows, their weights being unpacked in `panel`.
void multiply_panel(const Matmul& job, const float* panel, std::size_t first, std::size_t outputs) {
  const std::size_t columns = job.weight.columns;
  const auto* const all_x = reinterpret_cast<const float*>(job.x);
  const std::size_t x_stride = fp32_activation_stride(columns) / sizeof(float);
  for (std::size_t r = 0; r < job.rows; r += kRowsPerTile) {
    const std::size_t rows = std::min(kRowsPerTile, job.rows - r);
    const float* const x = all_x + r * x_stride;
    for (std::size_t n = 0; n < outputs;) {
      const std::size_t tile = outputs - n >= kOutputsPerTile ? kOutputsPerTile : 1;
      const float* const w = panel + n * columns;
      float sums[kRowsPerTile][kOutputsPerTile];
      if (tile == kOutputsPerTile) {
        lane_reductions_of_rows<kOutputsPerTile>(rows, x, x_stride, w, columns, sums);
      } else {
        lane_reductions_of_rows<1>(rows, x, x_stride, w, columns, sums);
      }
      // The epilogue: sums go to y, or are added to it.
      for (std::size_t i = 0; i < rows; ++i) {
        float* const y = job.y + (r + i) * job.y_stride + first + n;
        for (std::size_t j = 0; j < tile; ++j) {
          y[j] = job.accumulate ? y[j] + sums[i][j] : sums[i][j];
        }
      }
      n += tile;
    }
  }
}

}  // namespace

std::size_t matmul_scratch(std::size_t columns) { return kPanel * columns * sizeof(float); }

void matmul(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch) {
  auto* const panel = reinterpret_cast<float*>(scratch);
  for (std::size_t first = begin; first < end; first += kPanel) {
    const std::size_t outputs = std::min(kPanel, end - first);
    for (std::size_t n = 0; n < outputs; ++n) {
      unpack_row(job.weight, first + n, panel + n * job.weight.columns);
    }
    multiply_panel(job, panel, first, outputs);
  }
}

}  // namespace pagoda::kernels::fp32
