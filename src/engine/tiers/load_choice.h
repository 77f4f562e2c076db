// Chooses between loading and computing: a pure function of measured speeds.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace pagoda::engine {

enum class LoadMode : std::uint8_t {
  kAuto,    // whichever ends first
  kAlways,  // pages that a tier has are always loaded
};

// LoadEstimate says what is left of a load, and how fast the load and the model are.
struct LoadEstimate {
  std::uint64_t tokens_left = 0;  // tokens that have not come yet
  std::uint64_t bytes_left = 0;
  std::uint64_t bytes_running = 0;               // bytes that were asked for and are on their way
  double silent_s = 0;                           // since the load began or its last page came
  std::optional<double> bytes_per_second = {};   // rate of the tier; unknown before its first page
  std::optional<double> tokens_per_second = {};  // rate of the model
};

enum class LoadChoice : std::uint8_t {
  kWait,     // the load ends first: its request waits
  kCompute,  // the request computes from the front; pages may still come from the back
};

struct LoadDecision {
  LoadChoice choice = LoadChoice::kWait;
  // Seconds that computing the tokens left would take beyond loading them; 0 where unknown.
  double seconds_saved = 0;
  // The choice holds for so long if nothing comes.
  double holds_s = std::numeric_limits<double>::infinity();
};

LoadDecision load_or_recompute(LoadMode mode, const LoadEstimate& estimate);

}  // namespace pagoda::engine
