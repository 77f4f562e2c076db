// Python's string formatting as far as templates use it: "%s of %d" % values and "{} of
// {}".format(values).
#pragma once

#include "text/jinja/arguments.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// Supports %s, %d, %i and %%. `values` is a tuple, or one value.
Value format_percent(const Value& pattern, const Value& values, Heap& heap);
// Supports {}, {0}, {name}, {{ and }}.
Value format_braces(const Value& pattern, const Arguments& arguments, Heap& heap);

}  // namespace pagoda::text::jinja
