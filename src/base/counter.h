// Counters and histograms: one thread adds, any thread reads, without a lock. A recorded value is
// visible at once, and adding costs a plain load and a plain store.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"

namespace pagoda {

// A Counter holds a sum. T is an integer or a double.
template <class T>
class Counter {
 public:
  // Only one thread may call add().
  void add(T amount) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  T read() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> value_{0};
};

// A Histogram counts values in ranges between fixed bounds:
//
//   range     0            1                      last
//   value     <= bounds[0] | <= bounds[1] | …  |  more than all bounds
class Histogram {
 public:
  static constexpr std::size_t kBoundsMax = 31;

  struct Reading {
    std::span<const double> bounds;
    std::array<std::uint64_t, kBoundsMax + 1> counts{};  // [range]
    double sum = 0;

    // Returns the sum over the ranges, so that a reading never contradicts itself; `sum` may lack a
    // value that is being recorded.
    std::uint64_t count() const {
      std::uint64_t all = 0;
      for (const std::uint64_t range : counts) all += range;
      return all;
    }
  };

  // Bounds ascend and must outlive the histogram.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {
    ASSERT(bounds.size() <= kBoundsMax && std::is_sorted(bounds.begin(), bounds.end()),
           "bounds ascend and are few");
  }

  // Only one thread may call observe().
  void observe(double value) {
    const auto range = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    counts_[static_cast<std::size_t>(range)].add(1);
    sum_.add(value);
  }

  Reading read() const {
    Reading reading{.bounds = bounds_};
    for (std::size_t i = 0; i <= bounds_.size(); ++i) reading.counts[i] = counts_[i].read();
    reading.sum = sum_.read();
    return reading;
  }

 private:
  std::span<const double> bounds_;
  std::array<Counter<std::uint64_t>, kBoundsMax + 1> counts_;
  Counter<double> sum_;
};

}  // namespace pagoda
