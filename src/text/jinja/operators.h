// The operators, as in Python.
#pragma once

#include <compare>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja/heap.h"
#include "text/jinja/syntax.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

bool equal(const Value& left, const Value& right, Heap& heap);
// Throws where the two have no order; NaN is unordered.
std::partial_ordering order(const Value& left, const Value& right, Heap& heap);
// Implements `left is sameas right`: identity, not equality. Throws where Python leaves it open.
bool same(const Value& left, const Value& right);
bool contains(const Value& container, const Value& item, Heap& heap);
bool compare(Comparison comparison, const Value& left, const Value& right, Heap& heap);

// `operation` is one of the arithmetic ones, or kConcatenate.
Value combine(Operation operation, const Value& left, const Value& right, Heap& heap);
Value negate(const Value& value);
Value affirm(const Value& value);  // the plus sign

// Evaluates `object.name`: a method, else the entry of that key, else undefined.
Value attribute(const Value& object, std::string_view name, Heap& heap);
// Evaluates `object[key]`: the entry, else the result of the dot, else undefined.
Value subscript(const Value& object, const Value& key, Heap& heap);
// Absent bounds are undefined values, and so is a bound of none.
Value slice(const Value& object, const Value& first, const Value& last, const Value& step,
            Heap& heap);

// Returns the items that a loop visits: of a list, the keys of a dict, the characters of a string.
std::vector<Value> items_of(const Value& value, Heap& heap);
// Returns nothing where the value has no length.
std::optional<std::size_t> length_of(const Value& value);

[[noreturn]] void fail_undefined(const Value& value);

}  // namespace pagoda::text::jinja
