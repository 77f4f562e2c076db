// RateMeter measures a rate as units come: units per second of the time in which any was on its
// way. Time before the last seconds counts for less and less.
#pragma once

#include <cstdint>
#include <optional>

namespace pagoda::engine {

class RateMeter {
 public:
  // So many more transfers are on their way.
  void begin(std::int64_t now_ns, std::uint64_t count = 1);
  // One transfer has ended with so many units; none when it failed.
  void end(std::int64_t now_ns, double units);
  // Adds work that is done already: so many units in so many seconds.
  void add(double units, double seconds);

  // Nothing before the first unit.
  std::optional<double> units_per_second() const;
  // Returns the seconds in which anything was on its way, since the start.
  double seconds_busy() const { return seconds_busy_; }

 private:
  static constexpr double kSecondsRemembered = 2.0;

  void pass_time(std::int64_t now_ns);

  std::uint64_t running_ = 0;
  std::int64_t seen_ns_ = 0;  // time before this is counted
  double units_ = 0;
  double seconds_ = 0;
  double seconds_busy_ = 0;
};

}  // namespace pagoda::engine
