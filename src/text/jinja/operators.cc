#include "text/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "text/jinja/methods.h"
#include "text/jinja/show.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {
namespace {

bool equal_dicts(const Dict& left, const Dict& right, Heap& heap) {
  if (left.size() != right.size()) return false;
  return std::all_of(left.entries().begin(), left.entries().end(), [&](const Dict::Entry& entry) {
    const Value* const other = right.find(entry.key);
    return other != nullptr && equal(entry.value, *other, heap);
  });
}

bool equal_lists(const List& left, const List& right, Heap& heap) {
  if ((left.kind == ListKind::kTuple) != (right.kind == ListKind::kTuple)) return false;
  return std::equal(left.items.begin(), left.items.end(), right.items.begin(), right.items.end(),
                    [&](const Value& a, const Value& b) { return equal(a, b, heap); });
}

// An index from the front; nothing when there is no such item.
std::optional<std::size_t> place_of(std::int64_t index, std::size_t size) {
  if (index < 0) index += static_cast<std::int64_t>(size);
  if (index < 0 || index >= static_cast<std::int64_t>(size)) return std::nullopt;
  return static_cast<std::size_t>(index);
}

Value character(const OriginText& text, std::int64_t index, Heap& heap) {
  heap.step(text.size() / Heap::kBytesPerStep);
  const auto place = place_of(index, count_characters(text.bytes()));
  if (!place) return heap.undefined(fmt::format("character {} of the string", index));
  const std::size_t begin = byte_of_character(text.bytes(), *place);
  return heap.text(text.slice(begin, begin + character_at(text.bytes(), begin).bytes));
}

// The indices a slice takes, in order.
std::vector<std::size_t> slice_places(const Value& first, const Value& last, const Value& step,
                                      std::size_t size) {
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
  std::vector<std::size_t> places;
  for (std::int64_t at = from; stride > 0 ? at < to : at > to; at += stride) {
    places.push_back(static_cast<std::size_t>(at));
  }
  return places;
}

Value slice_text(const OriginText& text, const std::vector<std::size_t>& places, Heap& heap) {
  const std::string_view bytes = text.bytes();
  OriginText out;
  const bool contiguous = places.size() < 2 || places.back() == places.front() + places.size() - 1;
  if (places.empty()) return heap.text(std::move(out));
  if (contiguous) {
    const std::size_t begin = byte_of_character(bytes, places.front());
    const std::size_t end = begin + byte_of_character(bytes.substr(begin), places.size());
    return heap.text(text.slice(begin, end));
  }
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; at < bytes.size(); at += character_at(bytes, at).bytes) {
    begins.push_back(at);
  }
  begins.push_back(bytes.size());
  for (const std::size_t place : places) out.append(text, begins[place], begins[place + 1]);
  return heap.text(std::move(out));
}

}  // namespace

void fail_undefined(const Value& value) {
  const std::string* const name = value.undefined_name();
  fail(fmt::format("{} is undefined", name == nullptr ? "the value" : "'" + *name + "'"));
}

bool equal(const Value& left, const Value& right, Heap& heap) {
  const Heap::Level level(heap);
  heap.step();
  if (left.is_integral() && right.is_integral()) return left.as_integer() == right.as_integer();
  if (left.is_number() && right.is_number()) return left.as_real() == right.as_real();
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kText:
      heap.step(left.bytes().size() / Heap::kBytesPerStep);
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

std::strong_ordering order(const Value& left, const Value& right, Heap& heap) {
  const Heap::Level level(heap);
  heap.step();
  for (const Value& value : {left, right}) {
    if (value.is_undefined()) fail_undefined(value);
  }
  if (left.is_integral() && right.is_integral()) return left.as_integer() <=> right.as_integer();
  if (left.is_number() && right.is_number()) {
    const double a = left.as_real();
    const double b = right.as_real();
    if (a < b) return std::strong_ordering::less;
    return a > b ? std::strong_ordering::greater : std::strong_ordering::equal;
  }
  if (left.is_text() && right.is_text()) return left.bytes() <=> right.bytes();
  if (left.is_list() && right.is_list()) {
    const std::vector<Value>& a = left.as_list().items;
    const std::vector<Value>& b = right.as_list().items;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!equal(a[i], b[i], heap)) return order(a[i], b[i], heap);
    }
    return a.size() <=> b.size();
  }
  fail(fmt::format("a {} and a {} have no order", left.type_name(), right.type_name()));
}

bool contains(const Value& container, const Value& item, Heap& heap) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kText:
      if (!item.is_text()) fail(fmt::format("a {} cannot be in a string", item.type_name()));
      heap.step(1 + container.bytes().size() / Heap::kBytesPerStep);
      return container.bytes().find(item.bytes()) != std::string_view::npos;
    case Kind::kDict:
      return container.as_dict().find(item) != nullptr;
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

Value attribute(const Value& object, const std::string& name, Heap& heap) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is(Kind::kLoop)) return loop_attribute(object.as_loop(), name, heap);
  if (const std::string_view method = find_method(object.kind(), name); !method.empty()) {
    return heap.method({object, method});
  }
  if (object.is_dict() || object.is(Kind::kNamespace)) {
    if (const Value* const found = object.as_dict().find(name)) return *found;
  }
  return heap.undefined(fmt::format("{} of a {}", name, object.type_name()));
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
    if (const Value* const found = hashable ? object.as_dict().find(key) : nullptr) return *found;
  }
  if (key.is_text()) return attribute(object, std::string(key.bytes()), heap);
  return heap.undefined(fmt::format("an item of a {}", object.type_name()));
}

Value slice(const Value& object, const Value& first, const Value& last, const Value& step,
            Heap& heap) {
  if (object.is_undefined()) fail_undefined(object);
  const auto length = length_of(object);
  if (!length || object.is_dict()) fail(fmt::format("a {} has no slices", object.type_name()));
  heap.step(*length / Heap::kBytesPerStep);
  const std::vector<std::size_t> places = slice_places(first, last, step, *length);
  if (object.is_text()) return slice_text(object.as_text(), places, heap);
  const List& list = object.as_list();
  std::vector<Value> items;
  items.reserve(places.size());
  for (const std::size_t place : places) items.push_back(list.items[place]);
  return heap.list(std::move(items), list.kind);
}

std::vector<Value> items_of(const Value& value, Heap& heap) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kList:
      items = value.as_list().items;
      break;
    case Kind::kDict:
      for (const Dict::Entry& entry : value.as_dict().entries()) items.push_back(entry.key);
      break;
    case Kind::kText: {
      const OriginText& text = value.as_text();
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t bytes = character_at(text.bytes(), at).bytes;
        items.push_back(heap.text(text.slice(at, at + bytes)));
        at += bytes;
      }
      break;
    }
    default:
      fail(fmt::format("a {} has no items", value.type_name()));
  }
  heap.step(items.size());
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
