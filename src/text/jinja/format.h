// "%s of %d" % values and "{} of {}".format(values): what templates use of Python's formatting.
#pragma once

#include "text/jinja/arguments.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// %s, %d, %i and %%. `values` is a tuple, or one value.
Value format_percent(const Value& pattern, const Value& values, Heap& heap);
// {}, {0}, {name}, {{ and }}.
Value format_braces(const Value& pattern, const Arguments& arguments, Heap& heap);

}  // namespace pagoda::text::jinja
