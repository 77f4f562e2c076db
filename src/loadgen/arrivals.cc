#include "loadgen/arrivals.h"

#include <cmath>

#include "base/random.h"
#include "loadgen/random_streams.h"

namespace pagoda::loadgen {

std::int64_t Arrivals::next_ns() {
  if (options_.rate > 0) at_s_ += gap_s();
  ++count_;
  return static_cast<std::int64_t>(at_s_ * 1e9);
}

double Arrivals::gap_s() const {
  const double mean_s = 1 / options_.rate;
  switch (options_.kind) {
    case ArrivalKind::kPoisson:
      return -std::log1p(-random_unit(options_.seed, kArrivalStream, count_)) * mean_s;
    case ArrivalKind::kConstant:
      return count_ == 0 ? 0 : mean_s;
    case ArrivalKind::kBurst:
      return count_ == 0 || count_ % options_.burst != 0 ? 0 : options_.burst * mean_s;
  }
  return 0;
}

}  // namespace pagoda::loadgen
