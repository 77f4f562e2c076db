// The 8-lane reduction of kernels/ops.h, one value at a time.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

namespace pagoda::kernels::ref {

inline constexpr std::size_t kLanes = 8;

class LaneReduction {
 public:
  void add_product(std::size_t term, float a, float b) {
    float& lane = lanes_[term % kLanes];
    lane = std::fma(a, b, lane);
  }
  void add(std::size_t term, float a) { lanes_[term % kLanes] += a; }

  float fold() const {
    std::array<float, kLanes> l = lanes_;
    for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
      for (std::size_t i = 0; i < width; ++i) l[i] += l[i + width];
    }
    return l[0];
  }

 private:
  std::array<float, kLanes> lanes_ = {};
};

inline float dot(const float* a, const float* b, std::size_t count) {
  LaneReduction sum;
  for (std::size_t i = 0; i < count; ++i) sum.add_product(i, a[i], b[i]);
  return sum.fold();
}

}  // namespace pagoda::kernels::ref
