// Strict parsing of clients' JSON, and serialisation of replies.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/strict_json.h"

namespace pagoda::server {

// Keys keep the order in which they were sent, because chat templates print them.
using Json = nlohmann::ordered_json;

using text::kJsonDepthMax;
using text::kJsonValuesMax;

class ReadingMemory;

// Throws ApiError: 400 for text that text::parse_strict_json refuses, and the refusal of `memory`
// when the budget has no room for the values.
Json parse_json(std::string_view text, ReadingMemory* memory = nullptr);

// Bytes that are not UTF-8 become U+FFFD: a token may be half a character.
std::string dump_json(const Json& value);

}  // namespace pagoda::server
