// Which random numbers are whose: streams of base/random.h below one seed. Changing one part of a
// load leaves the numbers of the others alone.
#pragma once

#include <cstdint>

namespace pagoda::loadgen {

inline constexpr std::uint64_t kArrivalStream = 1;
inline constexpr std::uint64_t kInputLengthStream = 2;
inline constexpr std::uint64_t kOutputLengthStream = 3;
inline constexpr std::uint64_t kThinkStream = 4;
inline constexpr std::uint64_t kPrefixChoiceStream = 5;

// Streams of text, one for each part: of request, user or block number `index`.
inline constexpr std::uint64_t part_stream(std::uint64_t index) { return (1ULL << 62) + index; }
inline constexpr std::uint64_t prefix_stream(std::uint64_t index) { return (2ULL << 62) + index; }

}  // namespace pagoda::loadgen
