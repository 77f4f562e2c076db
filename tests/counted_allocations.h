// Counts every operator new of the program that links it.
#pragma once

#include <cstdint>

namespace pagoda {

std::uint64_t allocations_so_far();

}  // namespace pagoda
