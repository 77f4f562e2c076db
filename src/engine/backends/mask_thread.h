// MaskThread computes the masks of a launch's grammars beside its forward pass, on a thread of its
// own.
//
// A mask is a function of its SamplingState alone, and nobody else touches the states between
// begin() and wait(): who computes it, and when, changes no bit. The caller of wait() computes what
// the thread has not begun. Thread rule: one thread calls begin() and wait(), in turn.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "engine/runner.h"

namespace pagoda::engine {

class MaskThread {
 public:
  // `rows_max` bounds a launch's samples. Without `has_thread` wait() computes everything.
  MaskThread(std::size_t rows_max, bool has_thread);
  ~MaskThread();
  MaskThread(const MaskThread&) = delete;
  MaskThread& operator=(const MaskThread&) = delete;

  // Begins the masks of those samples that a grammar constrains. Their states stay where they are
  // until wait() returns.
  void begin(std::span<const LaunchSample> samples);
  // Returns when all are computed. Errors are kept for whoever samples.
  void wait();

 private:
  void work();
  // Computes masks of round `round` until all are taken.
  void take_rows(std::uint32_t round);

  // Written by begin() alone, when no row of the round before is left.
  std::vector<SamplingState*> rows_;
  // A round's number (upper half), and how many of its rows nobody has taken: a thread that wakes
  // late finds another round's number and takes nothing.
  std::atomic<std::uint64_t> left_{0};
  std::atomic<std::uint32_t> round_{0};
  std::atomic<std::uint32_t> unfinished_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace pagoda::engine
