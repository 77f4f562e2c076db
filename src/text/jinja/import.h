// Converts JSON to values that all have one origin.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// Templates see the keys in the order in which they were sent.
using JsonInput = nlohmann::ordered_json;

// Parses `text`, or returns why text/strict_json.h refuses it. The result depends on the text
// alone: the function throws when the limits or the account have no more.
Result<JsonInput> parse_json(std::string_view text, Heap& heap);

// Throws on strings that are not UTF-8, integers beyond 64 bits, and nesting beyond the limit.
Value import_json(const JsonInput& json, Origin origin, Heap& heap);

}  // namespace pagoda::text::jinja
