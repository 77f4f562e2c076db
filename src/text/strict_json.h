// Parses JSON of untrusted origin strictly and within limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/memory_account.h"

namespace pagoda::text {

inline constexpr std::size_t kJsonDepthMax = 64;
inline constexpr std::size_t kJsonValuesMax = std::size_t{1} << 22;

// Keys keep the order in which they were sent. The parser refuses invalid JSON (such as NaN and
// bytes that are not UTF-8), a key that occurs twice in one object, and values beyond the limits
// above. It takes O(n log n) in the text's length, whatever the keys are.
//
// `account` counts an upper bound of the value's memory, including the parser's own and vectors
// while they grow. kExhausted means that the account has no more.
//
// `deep_path` gets the first levels of the path to a value that is nested too deeply,
// "tools[0].function.parameters", with which the error's message begins then; else it stays.
Result<nlohmann::ordered_json> parse_strict_json(std::string_view text,
                                                 MemoryAccount* account = nullptr,
                                                 std::string* deep_path = nullptr);

// Returns an upper bound of the memory that a value holds besides its own place. A copy holds no
// more.
std::uint64_t json_bytes(const nlohmann::ordered_json& value);

}  // namespace pagoda::text
