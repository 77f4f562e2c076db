// The methods of strings, lists and dicts, and the attributes of `loop`.
#pragma once

#include <string_view>

#include "text/jinja/arguments.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// Returns the method's name with static lifetime; empty when Python's type has no such method. Some
// of the existing methods cannot be called here.
std::string_view find_method(Kind kind, std::string_view name);
Value call_method(const Method& method, const Arguments& arguments, Heap& heap);

Value loop_attribute(const Loop& loop, std::string_view name, Heap& heap);

}  // namespace pagoda::text::jinja
