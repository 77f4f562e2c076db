// What operators do to values, as in Python.
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
// Throws where the two have no order; what is no number is neither before nor behind any.
std::partial_ordering order(const Value& left, const Value& right, Heap& heap);
// `left is sameas right`: one value, not two that are equal. Throws where Python leaves it open.
bool same(const Value& left, const Value& right);
bool contains(const Value& container, const Value& item, Heap& heap);
bool compare(Comparison comparison, const Value& left, const Value& right, Heap& heap);

// `operation` is one of the arithmetic ones, or kConcatenate.
Value combine(Operation operation, const Value& left, const Value& right, Heap& heap);
Value negate(const Value& value);
Value affirm(const Value& value);  // the plus sign

// `object.name`: a method, else the entry of that key, else undefined.
Value attribute(const Value& object, std::string_view name, Heap& heap);
// `object[key]`: the entry, else what the dot would give, else undefined.
Value subscript(const Value& object, const Value& key, Heap& heap);
// Absent bounds are undefined values; so is a bound that is none.
Value slice(const Value& object, const Value& first, const Value& last, const Value& step,
            Heap& heap);

// The items a loop goes through: of a list, the keys of a dict, the characters of a string.
std::vector<Value> items_of(const Value& value, Heap& heap);
// Nothing where the value has no length.
std::optional<std::size_t> length_of(const Value& value);

[[noreturn]] void fail_undefined(const Value& value);

}  // namespace pagoda::text::jinja
