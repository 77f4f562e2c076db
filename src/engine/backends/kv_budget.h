// Computes how much memory the cache takes by default: a share of the free memory, within what the
// process may have (cgroup limits respected).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace pagoda::engine {

// Share of the free memory, after the model's weights are counted.
inline constexpr double kKvMemoryShare = 0.5;

// Returns the bytes this process could still take without making the host swap: the least of what
// the system calls available and what each memory cgroup above us leaves. `root` is "/" but in
// tests.
Result<std::uint64_t> memory_available(const std::string& root = "/");

// Returns the bytes of a cache: those that were asked for, else kKvMemoryShare of what is
// available.
Result<std::uint64_t> cache_bytes(std::optional<std::uint64_t> asked);

}  // namespace pagoda::engine
