// Counts every operator new of the program that links it.
#pragma once

#include <cstdint>

namespace pagoda {

std::uint64_t allocations_so_far();
// As asked for; nothing is taken off for what was given back.
std::uint64_t bytes_allocated_so_far();

}  // namespace pagoda
