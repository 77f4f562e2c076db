#include "model/matmul_runner.h"

#include <algorithm>

namespace pagoda::model {
namespace {

// Whole cache lines with one between, so that threads never share a line.
constexpr std::size_t with_spare_line(std::size_t bytes) {
  return (bytes + 2 * kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

}  // namespace

MatmulRunner::MatmulRunner(const kernels::KernelSet& kernels, ThreadPool& pool,
                           std::size_t scratch_bytes)
    : kernels_(kernels), pool_(pool), scratch_stride_(with_spare_line(scratch_bytes)) {
  scratch_.resize(pool.threads() * scratch_stride_);
}

void MatmulRunner::run(std::span<const Product> products) {
  for_items(
      products, [](const Product& product) { return panels_of(product.projection->weight); },
      [&](const Product& product, WorkRange panels) { compute(product, panels); });
}

void MatmulRunner::compute(const Product& product, WorkRange panels) {
  const Projection& projection = *product.projection;
  const std::size_t begin = panels.begin * kernels::kMatmulPanel;
  const std::size_t end = std::min(panels.end * kernels::kMatmulPanel, projection.weight.rows);
  kernels_.matmul({.x = product.x,
                   .rows = product.rows,
                   .weight = projection.weight,
                   .y = product.y,
                   .y_stride = product.stride,
                   .accumulate = product.accumulate},
                  begin, end, scratch(panels.thread));
  if (projection.bias.empty()) return;
  for (std::size_t row = 0; row < product.rows; ++row) {
    float* const y = product.y + row * product.stride;
    for (std::size_t n = begin; n < end; ++n) y[n] += projection.bias[n];
  }
}

}  // namespace pagoda::model
