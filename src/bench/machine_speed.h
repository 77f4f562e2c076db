// Measures this machine: how fast its cores read memory and how fast they multiply, and whether
// that stayed so while something else was measured.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/large_array.h"
#include "base/thread_pool.h"

namespace pagoda::bench {

struct ReadSpeed {
  std::uint64_t bytes;  // read again and again: as little as a cache holds, or more
  std::uint32_t threads;
  double gigabytes_per_second;
};

struct MultiplySpeed {
  std::string_view kind;
  std::uint32_t threads;
  double tera_per_second;  // multiply-adds
};

// Speeds at one moment; the same probes in the same order each time.
struct MachineSpeed {
  std::vector<ReadSpeed> reads;  // sizes growing
  std::vector<MultiplySpeed> multiplies;
};

// The most that was seen of each.
MachineSpeed best_speed(std::span<const MachineSpeed> seen);

// How long something must take at these speeds, and which of them says so.
struct SpeedLimit {
  double seconds;
  bool by_memory;
};
// `bytes` are read out of the `set_bytes` that such calls cycle over.
SpeedLimit speed_limit(const MachineSpeed& speed, std::uint32_t threads, std::uint64_t bytes,
                       std::uint64_t set_bytes, std::uint64_t multiply_adds);

// By this many threads out of a buffer of at least `bytes`, or out of the largest there is.
double read_speed(const MachineSpeed& speed, std::uint64_t bytes, std::uint32_t threads);
// Returns the rate of the fastest kind of multiply-adds, in 10^12 a second.
double multiply_speed(const MachineSpeed& speed, std::uint32_t threads);

// Speeds may move this much, the most over the least, before nothing measured meanwhile counts.
inline constexpr double kSpeedMoveMax = 1.2;

// Returns a sentence with both figures for each speed that moved more.
std::vector<std::string> moved_speeds(std::span<const MachineSpeed> seen);

class SpeedProbe {
 public:
  // Measures one thread and `threads`; takes memory for a buffer that no cache holds.
  SpeedProbe(std::uint32_t threads, const Clock& clock);
  MachineSpeed measure();

 private:
  double read_once(std::uint64_t bytes, ThreadPool& pool);
  double multiply_once(std::uint64_t (*run)(std::uint64_t), ThreadPool& pool);

  const Clock& clock_;
  std::vector<std::uint32_t> thread_counts_;
  std::vector<std::uint64_t> sizes_;
  LargeArray<std::uint64_t> buffer_;
};

}  // namespace pagoda::bench
