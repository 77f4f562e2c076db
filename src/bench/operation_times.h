// How long a kernel set takes for each operation of a model, all threads together, on seeded random
// values. This is the one file of the benchmark that knows how kernels are called.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "bench/model_shape.h"
#include "kernels/ops.h"
#include "kv/memory/page_layout.h"

namespace pagoda::bench {

struct OperationTime {
  std::string operation;    // "matmul gate, up"
  std::string shape;        // "576 -> 1536 Q4_1", "9 / 3 heads of 64 at 4096"
  std::uint64_t rows = 0;   // tokens at once
  double seconds = 0;       // of one call: the median
  std::uint64_t bytes = 0;  // that one call must read or write at the least
  // Calls cycle over this many bytes, as over the layers of a model: decides which cache they come
  // from.
  std::uint64_t set_bytes = 0;
  std::uint64_t multiply_adds = 0;  // 0: not what it is about
};

struct OperationOptions {
  std::vector<std::uint32_t> rows = {1, 16, 512};
  std::vector<std::uint32_t> depths = {1024, 4096};  // keys before the first row of attention
  kv::memory::Elements kv_elements = kv::memory::Element::kF16;
  double seconds = 0.2;  // spent on each, at least
};

class OperationTimer {
 public:
  OperationTimer(const kernels::KernelSet& kernels, ThreadPool& pool, const Clock& clock,
                 const OperationOptions& options)
      : kernels_(kernels), pool_(pool), clock_(clock), options_(options) {}

  // outputs x columns, for every number of rows; `copies`: how often a model has such a matrix.
  std::vector<OperationTime> time_matmul(const std::string& name, gguf::TensorType type,
                                         std::uint32_t outputs, std::uint32_t columns,
                                         std::uint32_t copies) const;
  // For every depth and number of rows.
  std::vector<OperationTime> time_attention(const ModelShape& shape) const;
  // Norms, rotations, activations: for every number of rows.
  std::vector<OperationTime> time_row_operations(const ModelShape& shape) const;

 private:
  // Median seconds of call(0), call(1), … call(copies - 1), call(0), …
  double median_seconds(std::size_t copies, const std::function<void(std::size_t)>& call) const;
  OperationTime time_attention_rows(const ModelShape& shape, std::uint32_t depth,
                                    std::uint32_t rows) const;

  const kernels::KernelSet& kernels_;
  ThreadPool& pool_;
  const Clock& clock_;
  const OperationOptions& options_;
};

}  // namespace pagoda::bench
