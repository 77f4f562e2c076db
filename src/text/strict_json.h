// JSON that others wrote, read strictly and within limits.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"
#include "text/memory_account.h"

namespace pagoda::text {

inline constexpr std::size_t kJsonDepthMax = 64;
inline constexpr std::size_t kJsonValuesMax = std::size_t{1} << 22;

// Keys stay in the order they were sent. Refused are what is no JSON (NaN is none, nor are bytes
// that are no UTF-8), a key that comes twice in one object, and what is beyond the limits above.
// Takes n log n in the text's length, whatever the keys are.
//
// What the value takes is counted by `account`, from above: what the parser holds meanwhile, too,
// and vectors while they grow. kExhausted: the account has no more.
Result<nlohmann::ordered_json> parse_strict_json(std::string_view text,
                                                 MemoryAccount* account = nullptr);

}  // namespace pagoda::text
