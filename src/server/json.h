// JSON from clients, read strictly, and JSON for them.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace pagoda::server {

// Keys stay in the order they were sent: chat templates print them.
using Json = nlohmann::ordered_json;

inline constexpr std::size_t kJsonDepthMax = 64;
inline constexpr std::size_t kJsonValuesMax = std::size_t{1} << 22;

// Throws ApiError (400) for what is no JSON (NaN is none, nor are bytes that are no UTF-8), for a
// key that comes twice in one object, and beyond the limits above. Linear in the text's length.
Json parse_json(std::string_view text);

// Bytes that are no UTF-8 become U+FFFD: a token may be half a character.
std::string dump_json(const Json& value);

}  // namespace pagoda::server
