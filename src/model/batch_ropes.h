// The rotations of a model, and their angles for the rows of a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/ops.h"
#include "model/config.h"
#include "model/rope.h"

namespace pagoda::model {

class BatchRopes {
 public:
  // `divisors` are those of the first rotation (RopeTable). The config must outlive the object.
  BatchRopes(const Config& config, std::span<const float> divisors, std::size_t rows_max);

  // Computes the angles of rows at position_of(row), of none where that is nothing.
  template <class PositionOf>
  void place(ThreadPool& pool, std::size_t rows, const PositionOf& position_of) {
    pool.run(rows, [&](WorkRange range) {
      for (std::size_t row = range.begin; row < range.end; ++row) {
        const std::optional<std::uint64_t> position = position_of(row);
        if (position) fill(row, *position);
      }
    });
  }

  // The rotation of a layer for a row; of a layer that has none, of no pair.
  kernels::RopeRow row(std::uint32_t layer, std::size_t row) const;

 private:
  struct Angles {
    RopeTable table;
    std::vector<float> cosines;  // [rows_max, pairs]
    std::vector<float> sines;    // [rows_max, pairs]
  };

  void fill(std::size_t row, std::uint64_t position);

  const Config& config_;
  std::vector<Angles> ropes_;  // those of the configuration
};

}  // namespace pagoda::model
