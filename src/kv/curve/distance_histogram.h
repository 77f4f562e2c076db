// Weights by distance, in buckets whose width grows with the distance: one each up to 64, then 64
// to a doubling, so that a bucket is at most 1/64 of its distance wide. Distances begin at 1. 23
// KiB.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace pagoda::kv {

class DistanceHistogram {
 public:
  void add(std::uint64_t distance, double weight) {
    buckets_[bucket_of(std::min(distance, kDistanceMax))] += weight;
  }

  // Returns the weight of all distances up to this one; the bucket it falls into counts in
  // proportion.
  double up_to(std::uint64_t distance) const {
    if (distance == 0) return 0;
    distance = std::min(distance, kDistanceMax);
    const std::size_t last = bucket_of(distance);
    double sum = 0;
    for (std::size_t i = 0; i < last; ++i) sum += buckets_[i];
    const std::uint64_t covered = distance - first_of(last) + 1;
    const std::uint64_t width = first_of(last + 1) - first_of(last);
    return sum + buckets_[last] * static_cast<double>(covered) / static_cast<double>(width);
  }

 private:
  static constexpr std::size_t kStepBits = 6;
  static constexpr std::uint64_t kSteps = 1u << kStepBits;
  static constexpr std::size_t kDistanceBits = 48;
  static constexpr std::uint64_t kDistanceMax = (std::uint64_t{1} << kDistanceBits) - 1;

  static std::size_t bucket_of(std::uint64_t distance) {
    if (distance < kSteps) return distance;
    const std::size_t shift = static_cast<std::size_t>(std::bit_width(distance)) - 1 - kStepBits;
    return shift * kSteps + (distance >> shift);
  }
  static std::uint64_t first_of(std::size_t bucket) {
    if (bucket < kSteps) return bucket;
    return (bucket % kSteps + kSteps) << (bucket / kSteps - 1);
  }

  std::array<double, (kDistanceBits - kStepBits + 1)* kSteps> buckets_ = {};
};

}  // namespace pagoda::kv
