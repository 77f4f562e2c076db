// The fastest cores of the moment.
//
// On a shared machine the other hardware thread of a core may be someone else's: what a core gives
// then changes by the second, and two programs measured one after the other meet two machines. Who
// pins both to the fastest cores first, and looks again afterwards, knows what was compared.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace pagoda::bench {

class FastestCores {
 public:
  // `count` of the cores this process may use now, or all where there are no more.
  FastestCores(std::uint32_t count, const Clock& clock);

  // Probes every core and confines all threads of this process, and the programs it starts, to the
  // fastest. What the slowest of those gives, in TMAC/s.
  Result<double> choose();
  // Returns what the slowest of those chosen gives now, of all cores where none were chosen, in
  // TMAC/s.
  Result<double> speed_now() const;

 private:
  std::uint32_t count_;
  const Clock& clock_;
  std::vector<int> cores_;   // that may be used
  std::vector<int> chosen_;  // the fastest of cores_
};

}  // namespace pagoda::bench
