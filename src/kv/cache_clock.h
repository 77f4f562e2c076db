// The two clocks of a cache, as its parts read them.
#pragma once

#include <cstdint>

#include "kv/ids.h"

namespace pagoda::kv {

struct CacheClock {
  Tick tick = 0;             // counts what happens to blocks: a later event has a larger tick
  std::int64_t time_ns = 0;  // is told by the cache's owner (README: E9) and never runs backwards

  std::int64_t time_s() const { return time_ns / 1'000'000'000; }
};

}  // namespace pagoda::kv
