// Load or recompute: a pure function of what is measured.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace pagoda::engine {

enum class LoadMode : std::uint8_t {
  kAuto,    // whatever ends first
  kAlways,  // what a tier has is loaded
};

// What is left of a load, and how fast it and the model are.
struct LoadEstimate {
  std::uint64_t tokens_left = 0;  // that have not come yet
  std::uint64_t bytes_left = 0;
  std::uint64_t bytes_running = 0;               // of them: asked for, and on their way
  double silent_s = 0;                           // since it began or its last page came
  std::optional<double> bytes_per_second = {};   // of the tier; unknown before its first page
  std::optional<double> tokens_per_second = {};  // that the model computes
};

enum class LoadChoice : std::uint8_t {
  kWait,     // the load ends first: its request waits
  kCompute,  // the request computes from the front; pages may still come from the back
};

struct LoadDecision {
  LoadChoice choice = LoadChoice::kWait;
  // What computing the tokens left would take beyond loading them; 0 where unknown.
  double seconds_saved = 0;
  // So long the choice holds if nothing comes.
  double holds_s = std::numeric_limits<double>::infinity();
};

LoadDecision load_or_recompute(LoadMode mode, const LoadEstimate& estimate);

}  // namespace pagoda::engine
