// How much stack a program needs to come to an end.
//
// A text that nests as deep as the stack allows must still have an end: what cannot be completed is
// not begun.
#pragma once

#include <cstdint>
#include <vector>

#include "structured/program.h"

namespace pagoda::structured {

// Returns for each instruction the most frames that the way from it to the end of its rule, or of
// its repetition, puts on the stack, where the way is chosen that needs the fewest.
// kEndlessDepth: there is no way.
inline constexpr std::uint32_t kEndlessDepth = 0xFFFFFFFF;
std::vector<std::uint32_t> completion_depths(const Program& program);

}  // namespace pagoda::structured
