#include "engine/rate_meter.h"

#include "base/assert.h"
#include "base/clock.h"

namespace pagoda::engine {

void RateMeter::begin(std::int64_t now_ns, std::uint64_t count) {
  pass_time(now_ns);
  running_ += count;
}

void RateMeter::end(std::int64_t now_ns, double units) {
  ASSERT(running_ > 0, "what ends has begun");
  pass_time(now_ns);
  --running_;
  add(units, 0);
}

void RateMeter::pass_time(std::int64_t now_ns) {
  if (now_ns <= seen_ns_) return;  // reported late: another transfer has begun since
  const double passed = running_ > 0 ? seconds_between(seen_ns_, now_ns) : 0;
  seconds_ += passed;
  seconds_busy_ += passed;
  seen_ns_ = now_ns;
}

void RateMeter::add(double units, double seconds) {
  units_ += units;
  seconds_ += seconds;
  if (seconds_ <= kSecondsRemembered) return;
  units_ *= kSecondsRemembered / seconds_;
  seconds_ = kSecondsRemembered;
}

std::optional<double> RateMeter::units_per_second() const {
  if (units_ <= 0 || seconds_ <= 0) return std::nullopt;
  return units_ / seconds_;
}

}  // namespace pagoda::engine
