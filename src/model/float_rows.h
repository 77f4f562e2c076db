// Rows of floats an odd number of cache lines apart.
//
// GEMMs write column by column: 16 outputs of one row, then of the next. With rows a power of two
// apart, as is usual for widths, a whole column would map to a few sets of each cache.
#pragma once

#include <cstddef>

#include "base/large_array.h"

namespace pagoda::model {

class FloatRows {
 public:
  void resize(std::size_t rows, std::size_t width) {
    constexpr std::size_t kLineFloats = kCacheLineBytes / sizeof(float);
    const std::size_t lines = (width + kLineFloats - 1) / kLineFloats;
    stride_ = (lines | 1) * kLineFloats;
    values_.resize(rows * stride_);
  }

  float* row(std::size_t index) { return values_.data() + index * stride_; }
  const float* row(std::size_t index) const { return values_.data() + index * stride_; }
  std::size_t stride() const { return stride_; }  // floats from row to row
  std::size_t bytes() const { return values_.size() * sizeof(float); }

 private:
  LargeArray<float> values_;
  std::size_t stride_ = 0;
};

}  // namespace pagoda::model
