// {{ value | filter }} and {% if value is test %}.
#pragma once

#include <string_view>

#include "text/jinja/arguments.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// These throw when there is no filter or test of that name.
Value apply_filter(std::string_view name, const Value& subject, const Arguments& arguments,
                   Heap& heap);
bool apply_test(std::string_view name, const Value& subject, const Arguments& arguments,
                Heap& heap);

using Filter = Value (*)(const Value& subject, const Arguments& arguments, Heap& heap);
// Finds the filters over lists and dicts (sequence_filters.cc); nullptr when there is none of that
// name.
Filter find_sequence_filter(std::string_view name);

// Resolves "a.b.0": attributes and indices one after another, as selectattr, map and sort take
// them.
Value attribute_path(const Value& object, std::string_view path, Heap& heap);

}  // namespace pagoda::text::jinja
