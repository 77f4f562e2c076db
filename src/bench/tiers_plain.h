// Measures what the media of tiers give a plain program that checks nothing, for comparison.
#pragma once

#include <cstdint>
#include <string>

#include "bench/bench_run.h"
#include "store/remote/remote_url.h"

namespace pagoda::bench {

struct PlainPages {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  // of each
};

struct TierSpeed {
  double write_s = 0;  // until durable
  double read_s = 0;
};

// From one place in memory to another and back.
Result<TierSpeed> measure_memcpy(const PlainPages& pages, const BenchRun& run);
// dd, past the page cache, over a file in the folder.
Result<TierSpeed> measure_dd(const std::string& folder, const PlainPages& pages,
                             const BenchRun& run);
// redis-benchmark: one pipelined connection, SETs of different keys, GETs of one.
Result<TierSpeed> measure_redis(const store::RemoteUrl& url, const PlainPages& pages,
                                const BenchRun& run);

}  // namespace pagoda::bench
