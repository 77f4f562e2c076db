// KeyObserver adds up which keys queries look at, for KV policies that select pages
// (kv/page_selection.h): once a layer has attended, the observed rows' softmax is computed again,
// by itself, from the scores that attention has (KernelSet::score_split), and added to the counters
// of their sequences.
//
// Counters are integers that threads add to in any order. Thread rule: as Decoder; memory grows
// with the longest context observed, up to kObserverBytesMax or what one thread needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/large_array.h"
#include "base/thread_pool.h"
#include "kernels/ops.h"
#include "kv/memory/selected_pages.h"

namespace pagoda::model {

// How a layer is observed in bounded memory.
struct ObserverPlan {
  std::uint32_t rows = 1;   // of a sequence that are observed together
  std::size_t workers = 1;  // that observe at a time
};

inline constexpr std::size_t kObserverBytesMax = std::size_t{256} << 20;

// Plans for so many query heads a KV head, rows of `stride` scores, and threads.
ObserverPlan plan_observer(std::uint32_t group, std::size_t stride, std::size_t threads);

// Consecutive rows of one sequence in one layer.
struct ObservedRows {
  kernels::Attention job;
  kernels::AttentionRows rows;
  const float* sinks;                 // partial results of all heads' learned sinks, or null
  std::uint64_t* counters = nullptr;  // of the layer, by slot
  std::uint64_t head_stride = 0;
};

class KeyObserver {
 public:
  // Both must outlive the object.
  KeyObserver(const kernels::KernelSet& kernels, ThreadPool& pool)
      : kernels_(kernels), pool_(pool), memories_(pool.threads()) {}

  // Adds rows of a layer whose group has no window of its own. The first is at that position;
  // those that `selected` does not observe are left out.
  void add(ObservedRows tile, std::uint32_t group, std::uint64_t position,
           const kv::memory::SelectedPages& selected);
  // Observes what was added since the last call, once it has attended.
  void run();

 private:
  // Each worker computes in a memory of its own.
  struct Memory {
    LargeArray<float> scores;           // [rows * group, stride]
    LargeArray<std::byte> scratch;      // of kernels
    LargeArray<std::uint32_t> weights;  // [stride]
    LargeArray<std::uint64_t> sums;     // [stride]
  };

  // Positions that a row of scores has room for: whole splits, and a learned sink.
  std::size_t stride_of(const ObservedRows& tile) const;
  void observe(const ObservedRows& tile, std::uint32_t kv_head, Memory& memory) const;

  const kernels::KernelSet& kernels_;
  ThreadPool& pool_;
  std::vector<ObservedRows> tiles_;
  std::vector<Memory> memories_;  // [worker]
};

}  // namespace pagoda::model
