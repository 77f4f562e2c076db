// Numbers of tokens as people write them: "8192", "8k", "8K", "0.5M".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pagoda::cli {

// Reads a whole number, or a number with a suffix as vLLM reads it: k, m and g are powers of 1000,
// K, M and G of 1024. Returns nothing for other texts, for a fraction of a token and beyond 2^53
// with a suffix.
std::optional<std::uint64_t> parse_token_count(std::string_view text);

}  // namespace pagoda::cli
