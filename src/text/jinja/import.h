// JSON to values. Everything in it has one origin.
#pragma once

#include <nlohmann/json.hpp>

#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

using Json = nlohmann::ordered_json;  // templates see the keys in the order they were sent

// Throws on strings that are not UTF-8, integers beyond 64 bits, and nesting beyond the limit.
Value import_json(const Json& json, Origin origin, Heap& heap);

}  // namespace pagoda::text::jinja
