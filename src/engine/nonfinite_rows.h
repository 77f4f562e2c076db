// A query, key or value may be not finite in the KV cache's element type (the rule is in
// kernels/ops.h). Such a token ends its request with this error on every path: nothing that was
// computed from it is an output.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace pagoda::engine {

// True: one flag of Decoder::nonfinite_rows() is set.
bool any_nonfinite(std::span<const std::uint8_t> rows);
// Returns 1 + the first flag that is set, at most 255; 0: none is.
std::uint8_t first_nonfinite(std::span<const std::uint8_t> rows);

// Makes the error of a request that has at least one such token among `rows` tokens from position
// `first` on.
Error nonfinite_rows_error(std::uint64_t first, std::uint64_t rows);

}  // namespace pagoda::engine
