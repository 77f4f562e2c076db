// How much memory the cache takes when nobody says: a share of what is free, within what the
// process may have (cgroup limits respected).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace pagoda::engine {

// Of free memory, after the model's weights are counted.
inline constexpr double kKvMemoryShare = 0.5;

// Bytes this process could still take without making the machine swap: the least of what the
// system calls available and what each memory cgroup above us leaves. `root` is "/" but in tests.
Result<std::uint64_t> memory_available(const std::string& root = "/");

}  // namespace pagoda::engine
