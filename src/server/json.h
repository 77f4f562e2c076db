// JSON from clients, read strictly, and JSON for them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/strict_json.h"

namespace pagoda::server {

// Keys stay in the order they were sent: chat templates print them.
using Json = nlohmann::ordered_json;

using text::kJsonDepthMax;
using text::kJsonValuesMax;

class ReadingMemory;

// Throws ApiError: 400 for what text::parse_strict_json refuses, and what `memory` says where there
// is none left.
Json parse_json(std::string_view text, ReadingMemory* memory = nullptr);

// Bytes that are no UTF-8 become U+FFFD: a token may be half a character.
std::string dump_json(const Json& value);

}  // namespace pagoda::server
