// Requests by what ended their match, since the start.
#pragma once

#include <array>
#include <cstdint>

#include "kv/explanation.h"

namespace pagoda::kv {

struct MissCounters {
  struct Count {
    std::uint64_t requests = 0;
    std::uint64_t tokens = 0;  // of their prompts that were not in memory
  };

  std::array<Count, kMissReasons> by_reason = {};
  std::uint64_t requests_evicted_for_others = 0;  // of kEvicted

  const Count& operator[](MissReason reason) const {
    return by_reason[static_cast<std::size_t>(reason)];
  }
  void add(const Explanation& why) {
    Count& count = by_reason[static_cast<std::size_t>(why.reason)];
    ++count.requests;
    count.tokens += why.prompt_tokens - why.tokens_matched;
    if (why.eviction && why.eviction->for_others) ++requests_evicted_for_others;
  }
};

}  // namespace pagoda::kv
