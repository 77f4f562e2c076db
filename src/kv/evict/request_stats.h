// A request as eviction orders see it.
#pragma once

#include <cstdint>

namespace pagoda::kv {

struct RequestStats {
  std::uint64_t blocks_found = 0;  // whole blocks of its prompt that were there
  std::uint64_t blocks_fresh = 0;  // blocks of its prompt that were not
  // It goes on where at most one other did, and so may be the next turn of a conversation; where
  // many part, as after a system prompt, it is one of many.
  bool goes_on = false;
  std::int32_t priority = 0;  // smaller is more urgent
};

}  // namespace pagoda::kv
