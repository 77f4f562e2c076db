// MatmulRunner divides GEMMs over the threads of a pool. Results do not depend on the division.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/large_array.h"
#include "base/thread_pool.h"
#include "kernels/ops.h"
#include "model/weights.h"

namespace pagoda::model {

// y = x w^T + bias of some rows: [rows, stride].
struct Product {
  const Projection* projection;
  const std::byte* x;  // packed activations
  std::size_t rows;
  float* y;
  std::size_t stride;
  bool accumulate = false;  // adds to what is in y
};

// Thread rule: run() is called by one thread at a time and not by tasks of the pool; compute(),
// scratch() and for_rows()'s tasks are for those tasks, each with its own thread number.
class MatmulRunner {
 public:
  // Kernels and the pool must outlive the runner. `scratch_bytes` is what one thread gets.
  MatmulRunner(const kernels::KernelSet& kernels, ThreadPool& pool, std::size_t scratch_bytes);

  // Computes the products: their panels are divided over threads as if they were one matrix.
  void run(std::span<const Product> products);
  // Computes panels of one product on the calling thread, which has the range's number.
  void compute(const Product& product, WorkRange panels);

  // Calls task(group, WorkRange within the group) for the items of several groups as if they were
  // one range; items_of(group) says how many one has.
  template <class Group, class ItemsOf, class Task>
  void for_items(std::span<const Group> groups, ItemsOf items_of, Task task) {
    std::size_t items = 0;
    for (const Group& group : groups) items += items_of(group);
    pool_.run(items, [&](WorkRange range) {
      std::size_t first = 0;
      for (const Group& group : groups) {
        const std::size_t last = first + items_of(group);
        const std::size_t begin = std::max(range.begin, first);
        const std::size_t end = std::min(range.end, last);
        if (begin < end) task(group, WorkRange{begin - first, end - first, range.thread});
        if (last >= range.end) break;
        first = last;
      }
    });
  }

  // Fewer are computed on one thread, which costs less than waking the others.
  static constexpr std::size_t kRowsWorthSharing = 8;

  // Runs task(WorkRange) over rows.
  template <class Task>
  void for_rows(std::size_t rows, Task&& task) {
    if (rows < kRowsWorthSharing) {
      task(WorkRange{0, rows, 0});
    } else {
      pool_.run(rows, task);
    }
  }

  // Memory of the thread with this number, aligned to a cache line.
  std::byte* scratch(std::size_t thread) { return scratch_.data() + thread * scratch_stride_; }

 private:
  const kernels::KernelSet& kernels_;
  ThreadPool& pool_;
  std::size_t scratch_stride_;     // in bytes
  LargeArray<std::byte> scratch_;  // [threads]
};

constexpr std::size_t panels_of(const kernels::WeightMatrix& weight) {
  return (weight.rows + kernels::kMatmulPanel - 1) / kernels::kMatmulPanel;
}

}  // namespace pagoda::model
