// The terms on which a request asks for blocks to be retained and what it is granted, as plain
// values.
#pragma once

#include <cstdint>
#include <string>

namespace pagoda::kv {

inline constexpr std::uint32_t kRetainPriorityMax = 100;

struct RetainTerms {
  std::uint64_t tokens = 0;    // of the beginning; whole blocks of them are kept
  std::int64_t until_ns = 0;   // by the cache's time
  std::uint32_t priority = 0;  // up to kRetainPriorityMax; what has less leaves sooner
  // Where a budget does not allow all of it: keep the whole blocks from the first that it allows,
  // instead of none.
  bool may_clip = false;
};

// The result of a retention that was granted. Blocks are pages of all groups.
struct Retained {
  std::uint64_t tokens = 0;
  std::uint64_t blocks = 0;
  std::uint64_t blocks_charged = 0;  // to the caller: others keep the rest already
  std::string limit = {};            // that clipped it; empty: all that was asked for is kept
};

// A grant that runs, for those who look from outside: whose it is stays unsaid.
struct GrantStats {
  bool is_public = false;  // asked for without a salt
  std::uint64_t blocks = 0;
  std::uint32_t priority = 0;
  std::int64_t until_ns = 0;
};

}  // namespace pagoda::kv
