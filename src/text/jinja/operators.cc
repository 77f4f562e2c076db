#include "text/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "text/abbreviated.h"
#include "text/jinja/methods.h"
#include "text/jinja/search.h"
#include "text/jinja/show.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {
namespace {

bool equal_dicts(const Dict& left, const Dict& right, Heap& heap) {
  if (left.size() != right.size()) return false;
  return std::all_of(left.entries().begin(), left.entries().end(), [&](const Dict::Entry& entry) {
    const Value* const other = right.find(entry.key, heap);
    return other != nullptr && equal(entry.value, *other, heap);
  });
}

bool equal_lists(const List& left, const List& right, Heap& heap) {
  if ((left.kind == ListKind::kTuple) != (right.kind == ListKind::kTuple)) return false;
  return std::equal(left.items.begin(), left.items.end(), right.items.begin(), right.items.end(),
                    [&](const Value& a, const Value& b) { return equal(a, b, heap); });
}

// Converts an index, negative from the end, to one from the front; nothing when there is no such
// item.
std::optional<std::size_t> place_of(std::int64_t index, std::size_t size) {
  if (index < 0) index += static_cast<std::int64_t>(size);
  if (index < 0 || index >= static_cast<std::int64_t>(size)) return std::nullopt;
  return static_cast<std::size_t>(index);
}

Value character(const OriginText& text, std::int64_t index, Heap& heap) {
  heap.read_bytes(text.size());
  const auto place = place_of(index, count_characters(text.bytes()));
  if (!place) return heap.undefined(fmt::format("character {} of the string", index));
  const std::size_t begin = byte_of_character(text.bytes(), *place);
  return heap.text(text, begin, begin + character_at(text.bytes(), begin).bytes);
}

// The items of a slice: `count` of them, `stride` apart.
struct Places {
  std::size_t first = 0;
  std::size_t count = 0;
  std::int64_t stride = 1;

  std::size_t operator[](std::size_t i) const {
    return static_cast<std::size_t>(static_cast<std::int64_t>(first) +
                                    static_cast<std::int64_t>(i) * stride);
  }
};

Places slice_places(const Value& first, const Value& last, const Value& step, std::size_t size) {
  const auto absent = [](const Value& bound) { return bound.is_undefined() || bound.is_none(); };
  const auto number = [&](const Value& bound) {
    if (!bound.is_integral()) fail(fmt::format("a {} cannot bound a slice", bound.type_name()));
    return bound.as_integer();
  };
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t stride = absent(step) ? 1 : std::clamp(number(step), -count - 1, count + 1);
  if (!absent(step) && number(step) == 0) fail("a slice cannot have step 0");
  const std::int64_t low = stride > 0 ? 0 : -1;
  const std::int64_t high = stride > 0 ? count : count - 1;
  const auto bound = [&](const Value& value, std::int64_t otherwise) {
    if (absent(value)) return otherwise;
    const std::int64_t place = number(value);
    return std::clamp(place < 0 ? std::max(place, -count - 1) + count : place, low, high);
  };
  const std::int64_t from = bound(first, stride > 0 ? low : high);
  const std::int64_t to = bound(last, stride > 0 ? high : low);
  const std::int64_t apart = stride > 0 ? to - from : from - to;
  if (apart <= 0) return {};
  const std::int64_t width = std::abs(stride);
  return {static_cast<std::size_t>(from), static_cast<std::size_t>((apart - 1) / width + 1),
          stride};
}

Value slice_text(const OriginText& text, const Places& places, Heap& heap) {
  const std::string_view bytes = text.bytes();
  TextBuilder out(heap);
  if (places.count == 0) return std::move(out).value();
  std::size_t at = byte_of_character(bytes, places.first);
  if (places.stride == 1) {
    const std::size_t taken = byte_of_character(bytes.substr(at), places.count);
    return heap.text(text, at, at + taken);
  }
  heap.read_characters(bytes.size());
  for (std::size_t i = 0; i < places.count; ++i) {
    const std::size_t width = character_at(bytes, at).bytes;
    out.append(text, at, at + width);
    if (i + 1 == places.count) break;
    for (std::int64_t n = 0; n < places.stride; ++n) at += character_at(bytes, at).bytes;
    for (std::int64_t n = 0; n > places.stride; --n) at -= character_before(bytes, at).bytes;
  }
  return std::move(out).value();
}

// Compares an integer with a float exactly: not every integer is a float.
std::partial_ordering order_exactly(std::int64_t left, double right) {
  if (std::isnan(right)) return std::partial_ordering::unordered;
  if (right >= 0x1p63) return std::partial_ordering::less;
  if (right < -0x1p63) return std::partial_ordering::greater;
  const double whole = std::trunc(right);
  const auto integer = static_cast<std::int64_t>(whole);
  return left != integer ? std::partial_ordering(left <=> integer) : 0.0 <=> right - whole;
}

std::partial_ordering order_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) return left.as_integer() <=> right.as_integer();
  if (left.is_integral()) return order_exactly(left.as_integer(), right.as_real());
  if (right.is_integral()) return 0 <=> order_exactly(right.as_integer(), left.as_real());
  return left.as_real() <=> right.as_real();
}

}  // namespace

void fail_undefined(const Value& value) {
  const std::string* const name = value.undefined_name();
  fail(fmt::format("{} is undefined", name == nullptr ? "the value" : "'" + *name + "'"));
}

bool equal(const Value& left, const Value& right, Heap& heap) {
  const Heap::Level level(heap);
  heap.step();
  if (left.is_number() && right.is_number()) return order_numbers(left, right) == 0;
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kText:
      heap.read_bytes(std::min(left.bytes().size(), right.bytes().size()));
      return left.bytes() == right.bytes();
    case Kind::kList:
      return equal_lists(left.as_list(), right.as_list(), heap);
    case Kind::kDict:
      return equal_dicts(left.as_dict(), right.as_dict(), heap);
    case Kind::kNamespace:
      return &left.as_dict() == &right.as_dict();
    default:
      return false;
  }
}

std::partial_ordering order(const Value& left, const Value& right, Heap& heap) {
  const Heap::Level level(heap);
  heap.step();
  for (const Value& value : {left, right}) {
    if (value.is_undefined()) fail_undefined(value);
  }
  if (left.is_number() && right.is_number()) return order_numbers(left, right);
  if (left.is_text() && right.is_text()) {
    heap.read_bytes(std::min(left.bytes().size(), right.bytes().size()));
    return left.bytes() <=> right.bytes();
  }
  if (left.is_list() && right.is_list() && left.as_list().kind == right.as_list().kind) {
    const std::vector<Value>& a = left.as_list().items;
    const std::vector<Value>& b = right.as_list().items;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!equal(a[i], b[i], heap)) return order(a[i], b[i], heap);
    }
    return a.size() <=> b.size();
  }
  fail(fmt::format("a {} and a {} have no order", left.type_name(), right.type_name()));
}

bool same(const Value& left, const Value& right) {
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::kNone:
      return true;
    case Kind::kBool:
      return left.as_bool() == right.as_bool();
    case Kind::kFunction:
      return left.as_function() == right.as_function();
    case Kind::kInteger:
    case Kind::kFloat:
    case Kind::kText:
      fail(fmt::format("sameas between two values of type {}: '==' compares them",
                       left.type_name()));
    default:
      return left.address() == right.address();
  }
}

bool contains(const Value& container, const Value& item, Heap& heap) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kText:
      if (!item.is_text()) fail(fmt::format("a {} cannot be in a string", item.type_name()));
      return Search(item.bytes(), Direction::kForward, heap).next(container.bytes()) !=
             std::string_view::npos;
    case Kind::kDict:
      return container.as_dict().find(item, heap) != nullptr;
    case Kind::kList: {
      const std::vector<Value>& items = container.as_list().items;
      return std::any_of(items.begin(), items.end(),
                         [&](const Value& each) { return equal(each, item, heap); });
    }
    default:
      fail(fmt::format("nothing can be in a {}", container.type_name()));
  }
}

bool compare(Comparison comparison, const Value& left, const Value& right, Heap& heap) {
  switch (comparison) {
    case Comparison::kEqual:
      return equal(left, right, heap);
    case Comparison::kNotEqual:
      return !equal(left, right, heap);
    case Comparison::kLess:
      return order(left, right, heap) < 0;
    case Comparison::kLessEqual:
      return order(left, right, heap) <= 0;
    case Comparison::kGreater:
      return order(left, right, heap) > 0;
    case Comparison::kGreaterEqual:
      return order(left, right, heap) >= 0;
    case Comparison::kIn:
      return contains(right, left, heap);
    case Comparison::kNotIn:
      return !contains(right, left, heap);
  }
  return false;
}

Value attribute(const Value& object, std::string_view name, Heap& heap) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is(Kind::kLoop)) return loop_attribute(object.as_loop(), name, heap);
  if (const std::string_view method = find_method(object.kind(), name); !method.empty()) {
    return heap.method({object, method});
  }
  if (object.is_dict() || object.is(Kind::kNamespace)) {
    heap.read_bytes(name.size());
    if (const Value* const found = object.as_dict().find(name)) return *found;
  }
  return heap.undefined(fmt::format("{} of a {}", abbreviated(name, 100), object.type_name()));
}

Value subscript(const Value& object, const Value& key, Heap& heap) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is_list() && key.is_integral()) {
    const std::vector<Value>& items = object.as_list().items;
    const auto place = place_of(key.as_integer(), items.size());
    return place ? items[*place] : heap.undefined(fmt::format("item {}", key.as_integer()));
  }
  if (object.is_text() && key.is_integral())
    return character(object.as_text(), key.as_integer(), heap);
  if (object.is_dict()) {
    const bool hashable = key.is_text() || key.is_number() || key.is_none();
    const Value* const found = hashable ? object.as_dict().find(key, heap) : nullptr;
    if (found != nullptr) return *found;
  }
  if (key.is_text()) return attribute(object, key.bytes(), heap);
  return heap.undefined(fmt::format("an item of a {}", object.type_name()));
}

Value slice(const Value& object, const Value& first, const Value& last, const Value& step,
            Heap& heap) {
  if (object.is_undefined()) fail_undefined(object);
  const auto length = length_of(object);
  if (!length || object.is_dict()) {
    return heap.undefined(fmt::format("a slice of a {}", object.type_name()));
  }
  heap.read_bytes(*length);
  const Places places = slice_places(first, last, step, *length);
  if (object.is_text()) return slice_text(object.as_text(), places, heap);
  const List& list = object.as_list();
  heap.reserve_values(places.count);
  std::vector<Value> items;
  items.reserve(places.count);
  for (std::size_t i = 0; i < places.count; ++i) items.push_back(list.items[places[i]]);
  return heap.list(std::move(items), list.kind);
}

std::vector<Value> items_of(const Value& value, Heap& heap) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kList:
      heap.reserve_values(value.as_list().items.size());
      items = value.as_list().items;
      break;
    case Kind::kDict:
      heap.reserve_values(value.as_dict().size());
      for (const Dict::Entry& entry : value.as_dict().entries()) items.push_back(entry.key);
      break;
    case Kind::kText: {
      const OriginText& text = value.as_text();
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t bytes = character_at(text.bytes(), at).bytes;
        items.push_back(heap.text(text, at, at + bytes));
        at += bytes;
      }
      heap.reserve_values(items.size());
      break;
    }
    default:
      fail(fmt::format("a {} has no items", value.type_name()));
  }
  return items;
}

std::optional<std::size_t> length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kText:
      return count_characters(value.bytes());
    case Kind::kList:
      return value.as_list().items.size();
    case Kind::kDict:
      return value.as_dict().size();
    default:
      return std::nullopt;
  }
}

}  // namespace pagoda::text::jinja
