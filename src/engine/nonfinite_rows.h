// Rows with a query, key or value that is not finite in the KV cache's element type (the rule is in
// kernels/ops.h). Whoever computes a request, such rows end it with this error: nothing that was
// computed from them is an output.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace pagoda::engine {

// Of flags as Decoder::nonfinite_rows() gives them: is one set?
bool any_nonfinite(std::span<const std::uint8_t> rows);

// Of a request that has one among `rows` rows from position `first` on, at least one.
Error nonfinite_rows_error(std::uint64_t first, std::uint64_t rows);

}  // namespace pagoda::engine
