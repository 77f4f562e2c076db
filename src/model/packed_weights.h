// A model's weights in the layout that a kernel set reads.
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
  // Packs every matrix for which the set has a packed layout. Matrices that the set reads unpacked
  // stay in the file, which must outlive the object in any case (the embedding is always read from
  // it).
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
