// JSON to values. Everything in it has one origin.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

using JsonInput = nlohmann::ordered_json;  // templates see the keys in the order they were sent

// What `text` says, or why it is no JSON that is taken (text/strict_json.h). That depends on the
// text alone: throws where the limits or the account have no more.
Result<JsonInput> parse_json(std::string_view text, Heap& heap);

// Throws on strings that are not UTF-8, integers beyond 64 bits, and nesting beyond the limit.
Value import_json(const JsonInput& json, Origin origin, Heap& heap);

}  // namespace pagoda::text::jinja
