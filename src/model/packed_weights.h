// A model's weights as a kernel set likes to read them.
#pragma once

#include <functional>

#include "base/large_array.h"
#include "base/thread_pool.h"
#include "kernels/ops.h"
#include "model/weights.h"

namespace pagoda::model {

// Called now and then while weights are packed, by one thread at a time.
using PackProgress = std::function<void(std::size_t bytes_done, std::size_t bytes_all)>;

class PackedWeights {
 public:
  // Packs every matrix the set wants packed. What the set reads as it is stays in the file: the
  // file must outlive this either way (the embedding is always read from it).
  PackedWeights(const Weights& weights, const kernels::KernelSet& kernels, ThreadPool& pool,
                const PackProgress& progress);

  const Weights* operator->() const { return &weights_; }
  const Weights& operator*() const { return weights_; }
  std::size_t bytes() const { return bytes_.size(); }

 private:
  Weights weights_;
  LargeArray<std::byte> bytes_;
};

}  // namespace pagoda::model
