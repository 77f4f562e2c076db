#include "engine/nonfinite_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace pagoda::engine {

bool any_nonfinite(std::span<const std::uint8_t> rows) {
  return std::any_of(rows.begin(), rows.end(), [](std::uint8_t row) { return row != 0; });
}

std::uint8_t first_nonfinite(std::span<const std::uint8_t> rows) {
  const auto first =
      std::find_if(rows.begin(), rows.end(), [](std::uint8_t row) { return row != 0; });
  if (first == rows.end()) return 0;
  return static_cast<std::uint8_t>(std::min<std::ptrdiff_t>(first - rows.begin() + 1, UINT8_MAX));
}

Error nonfinite_rows_error(std::uint64_t first, std::uint64_t rows) {
  return {ErrorCode::kCorrupt,
          fmt::format("a query, key or value of the model at positions {} to {} is not finite in "
                      "the KV cache's element type",
                      first, first + rows - 1)};
}

}  // namespace pagoda::engine
