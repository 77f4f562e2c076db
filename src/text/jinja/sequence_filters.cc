// Filters over lists and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "text/jinja/filters.h"
#include "text/jinja/operators.h"
#include "text/jinja/show.h"
#include "text/jinja/strings.h"

namespace pagoda::text::jinja {
namespace {

Value filter_length(const Value& subject, const Arguments& arguments, Heap&) {
  const BoundArguments bound("length", arguments, {});
  const auto length = length_of(subject);
  if (!length) fail(fmt::format("length of a {}", subject.type_name()));
  return Value::integer(static_cast<std::int64_t>(*length));
}

Value filter_list(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("list", arguments, {});
  return heap.list(items_of(subject, heap));
}

// Returns the item at one end; -1 is the last.
template <int kIndex>
Value filter_end(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound(kIndex == 0 ? "first" : "last", arguments, {});
  const auto length = length_of(subject);
  if (!length) fail(fmt::format("a {} has no items", subject.type_name()));
  if (*length == 0) return heap.undefined("an item of what has none");
  if (subject.is_dict()) {
    const std::vector<Dict::Entry>& entries = subject.as_dict().entries();
    return kIndex == 0 ? entries.front().key : entries.back().key;
  }
  return subscript(subject, Value::integer(kIndex), heap);
}

Value filter_reverse(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("reverse", arguments, {});
  if (subject.is_text()) return slice(subject, {}, {}, Value::integer(-1), heap);
  std::vector<Value> items = items_of(subject, heap);
  std::reverse(items.begin(), items.end());
  return heap.list(std::move(items), ListKind::kIterator);
}

Value filter_join(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("join", arguments, {"d", "attribute"});
  const Value between = bound.has(0) ? shown(bound[0], heap) : heap.text("");
  const OriginText& separator = between.as_text();
  TextBuilder joined(heap);
  bool first = true;
  for (const Value& item : items_of(subject, heap)) {
    if (!first) joined.append(separator);
    first = false;
    append_shown(bound.has(1) ? attribute_path(item, bound.text(1).bytes(), heap) : item, joined);
  }
  return std::move(joined).value();
}

Value filter_items(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("items", arguments, {});
  std::vector<Value> items;
  if (subject.is_dict()) {
    for (const Dict::Entry& entry : subject.as_dict().entries()) {
      items.push_back(heap.pair(entry.key, entry.value));
    }
  } else if (!subject.is_undefined()) {
    fail(fmt::format("items of a {}", subject.type_name()));
  }
  return heap.list(std::move(items), ListKind::kIterator);
}

// Texts compare in lower case unless `case_sensitive`.
Value folded(const Value& value, bool case_sensitive, Heap& heap) {
  return value.is_text() && !case_sensitive ? change_case(value.as_text(), Case::kLower, heap)
                                            : value;
}

struct Keyed {
  Value key;
  Value item;
};

std::vector<Value> sorted(std::vector<Keyed> keyed, bool reverse, Heap& heap) {
  // An exception leaves the vector valid but unordered, which is enough.
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? order(b.key, a.key, heap) < 0 : order(a.key, b.key, heap) < 0;
  });
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (const Keyed& each : keyed) items.push_back(each.item);
  return items;
}

Value filter_dictsort(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (!subject.is_dict()) fail(fmt::format("dictsort of a {}", subject.type_name()));
  const bool by_value = bound.has(1) && bound.text(1).bytes() == "value";
  std::vector<Keyed> keyed;
  for (const Dict::Entry& entry : subject.as_dict().entries()) {
    keyed.push_back({folded(by_value ? entry.value : entry.key, bound.flag_or(0, false), heap),
                     heap.pair(entry.key, entry.value)});
  }
  return heap.list(sorted(std::move(keyed), bound.flag_or(2, false), heap));
}

// Returns an item's sort key: the attributes in `paths`, separated by commas, or the item itself.
// List items may be equal without having an order.
Value sort_key(const Value& item, std::optional<std::string_view> paths, bool case_sensitive,
               Heap& heap) {
  std::vector<Value> keys;
  if (!paths) keys.push_back(folded(item, case_sensitive, heap));
  while (paths) {
    const std::size_t comma = paths->find(',');
    const Value key = attribute_path(item, paths->substr(0, comma), heap);
    keys.push_back(folded(key, case_sensitive, heap));
    if (comma == std::string_view::npos) break;
    paths->remove_prefix(comma + 1);
  }
  return heap.list(std::move(keys));
}

Value filter_sort(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::optional<std::string_view> paths;
  if (bound.has(2) && !bound[2].is_none()) paths = bound.text(2).bytes();
  std::vector<Keyed> keyed;
  for (const Value& item : items_of(subject, heap)) {
    keyed.push_back({sort_key(item, paths, bound.flag_or(1, false), heap), item});
  }
  return heap.list(sorted(std::move(keyed), bound.flag_or(0, false), heap));
}

Value filter_unique(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("unique", arguments, {"case_sensitive", "attribute"});
  Dict seen;
  std::vector<Value> items;
  for (const Value& item : items_of(subject, heap)) {
    const Value raw = bound.has(1) ? attribute_path(item, bound.text(1).bytes(), heap) : item;
    const Value key = folded(raw, bound.flag_or(0, false), heap);
    if (seen.find(key, heap) != nullptr) continue;
    seen.set(key, key, heap);
    items.push_back(item);
  }
  return heap.list(std::move(items), ListKind::kIterator);
}

template <bool kSmallest>
Value filter_extreme(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound(kSmallest ? "min" : "max", arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> items = items_of(subject, heap);
  if (items.empty()) return heap.undefined("an item of an empty list");
  const auto key = [&](const Value& item) {
    const Value raw = bound.has(1) ? attribute_path(item, bound.text(1).bytes(), heap) : item;
    return folded(raw, bound.flag_or(0, false), heap);
  };
  Value best = items.front();
  Value best_key = key(best);
  for (std::size_t i = 1; i < items.size(); ++i) {
    const Value each_key = key(items[i]);
    const auto compared = order(each_key, best_key, heap);
    if (kSmallest ? compared >= 0 : compared <= 0) continue;
    best = items[i];
    best_key = each_key;
  }
  return best;
}

Value filter_sum(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("sum", arguments, {"attribute", "start"});
  Value sum = bound.has(1) ? bound[1] : Value::integer(0);
  for (const Value& item : items_of(subject, heap)) {
    const bool has_path = bound.has(0) && !bound[0].is_none();
    const Value each = has_path ? attribute_path(item, bound.text(0).bytes(), heap) : item;
    sum = combine(Operation::kAdd, sum, each, heap);
  }
  return sum;
}

// Returns the arguments after the first `taken`, which belong to the inner filter or test.
Arguments rest_of(const Arguments& arguments, std::size_t taken, Heap& heap) {
  heap.step(arguments.positional.size() + arguments.named.size());
  Arguments rest;
  rest.named = arguments.named;
  for (std::size_t i = taken; i < arguments.positional.size(); ++i) {
    rest.positional.push_back(arguments.positional[i]);
  }
  return rest;
}

std::string_view text_argument(const Arguments& arguments, std::size_t place,
                               std::string_view callee) {
  if (place >= arguments.positional.size() || !arguments.positional[place].is_text()) {
    fail(fmt::format("{} needs a name", callee));
  }
  return arguments.positional[place].bytes();
}

// Returns the items for map and select; an empty value gives none, even when it is no list.
std::vector<Value> items_or_none(const Value& value, Heap& heap) {
  return value.truthy() ? items_of(value, heap) : std::vector<Value>();
}

Value filter_map(const Value& subject, const Arguments& arguments, Heap& heap) {
  std::vector<Value> items;
  if (arguments.positional.empty()) {
    const BoundArguments bound("map", arguments, {"attribute", "default"});
    const std::string_view path = bound.text(0).bytes();
    for (const Value& item : items_or_none(subject, heap)) {
      const Value found = attribute_path(item, path, heap);
      items.push_back(found.is_undefined() && bound.has(1) ? bound[1] : found);
    }
  } else {
    const std::string_view name = text_argument(arguments, 0, "map");
    const Arguments rest = rest_of(arguments, 1, heap);
    const Heap::Level level(heap);
    for (const Value& item : items_or_none(subject, heap)) {
      items.push_back(apply_filter(name, item, rest, heap));
    }
  }
  return heap.list(std::move(items), ListKind::kIterator);
}

// Implements select, reject, selectattr, rejectattr: keeps items for which the test returns
// `kWanted`.
template <bool kWanted, bool kByAttribute>
Value filter_select(const Value& subject, const Arguments& arguments, Heap& heap) {
  constexpr std::string_view kCallee = kByAttribute ? "selectattr" : "select";
  constexpr std::size_t kTest = kByAttribute ? 1 : 0;
  const std::string_view path =
      kByAttribute ? text_argument(arguments, 0, kCallee) : std::string_view();
  const bool has_test = arguments.positional.size() > kTest;
  const std::string_view test = has_test ? text_argument(arguments, kTest, kCallee) : "";
  const Arguments rest = rest_of(arguments, kTest + 1, heap);
  std::vector<Value> items;
  for (const Value& item : items_or_none(subject, heap)) {
    const Value tested = kByAttribute ? attribute_path(item, path, heap) : item;
    const bool holds = has_test ? apply_test(test, tested, rest, heap) : tested.truthy();
    if (holds == kWanted) items.push_back(item);
  }
  return heap.list(std::move(items), ListKind::kIterator);
}

constexpr std::array<std::pair<std::string_view, Filter>, 19> kSequenceFilters = {{
    {"count", filter_length},
    {"dictsort", filter_dictsort},
    {"first", filter_end<0>},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_end<-1>},
    {"length", filter_length},
    {"list", filter_list},
    {"map", filter_map},
    {"max", filter_extreme<false>},
    {"min", filter_extreme<true>},
    {"reject", filter_select<false, false>},
    {"rejectattr", filter_select<false, true>},
    {"reverse", filter_reverse},
    {"select", filter_select<true, false>},
    {"selectattr", filter_select<true, true>},
    {"sort", filter_sort},
    {"sum", filter_sum},
    {"unique", filter_unique},
}};

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  const auto* const found = std::find_if(kSequenceFilters.begin(), kSequenceFilters.end(),
                                         [&](const auto& row) { return row.first == name; });
  return found == kSequenceFilters.end() ? nullptr : found->second;
}

Value attribute_path(const Value& object, std::string_view path, Heap& heap) {
  Value value = object;
  while (true) {
    heap.step();
    const std::string part(path.substr(0, path.find('.')));
    std::int64_t index = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = parsed.ec == std::errc{} && parsed.ptr == part.data() + part.size();
    value = subscript(value, is_index ? Value::integer(index) : heap.text(part), heap);
    if (part.size() == path.size()) return value;
    path.remove_prefix(part.size() + 1);
  }
}

}  // namespace pagoda::text::jinja
