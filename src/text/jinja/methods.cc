#include "text/jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "text/abbreviated.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/search.h"
#include "text/jinja/strings.h"
#include "text/jinja/text_builder.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {
namespace {

// The list has all of Python's methods, because a dot finds a method before a key of the same name.
constexpr std::array<std::string_view, 47> kTextMethods = {
    "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
    "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
    "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
    "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
    "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
    "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
    "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
    "swapcase",     "title",       "translate", "upper",      "zfill"};
constexpr std::array<std::string_view, 11> kListMethods = {"append", "clear",   "copy",   "count",
                                                           "extend", "index",   "insert", "pop",
                                                           "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 11> kDictMethods = {
    "clear", "copy",    "fromkeys",   "get",    "items", "keys",
    "pop",   "popitem", "setdefault", "update", "values"};

[[noreturn]] void fail_unknown(const Method& method) {
  fail(fmt::format("the method '{}' of a {} is not supported", method.name,
                   method.receiver.type_name()));
}

std::optional<std::string_view> optional_text(const BoundArguments& bound, std::size_t parameter) {
  if (!bound.has(parameter) || bound[parameter].is_none()) return std::nullopt;
  return bound.text(parameter).bytes();
}

Value strip_method(const Method& method, const Arguments& arguments, Side side, Heap& heap) {
  const BoundArguments bound(method.name, arguments, {"chars"});
  return strip(method.receiver.as_text(), side, optional_text(bound, 0), heap);
}

// Tests `matches(affix)` for a text or for any of a tuple of texts.
template <class Matches>
Value affix_method(const Method& method, const Arguments& arguments, Heap& heap,
                   const Matches& matches) {
  const BoundArguments bound(method.name, arguments, {"affix"});
  bound.require(0);
  const auto fits = [&](const Value& affix) {
    if (!affix.is_text()) fail(fmt::format("{} of a {}", method.name, affix.type_name()));
    heap.step();
    heap.read_bytes(std::min(affix.bytes().size(), method.receiver.bytes().size()));
    return matches(affix.bytes());
  };
  const bool tuple = bound[0].is_list() && bound[0].as_list().kind == ListKind::kTuple;
  if (!tuple) return Value::boolean(fits(bound[0]));
  const std::vector<Value>& affixes = bound[0].as_list().items;
  return Value::boolean(std::any_of(affixes.begin(), affixes.end(), fits));
}

Value join_method(const Method& method, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound(method.name, arguments, {"iterable"});
  bound.require(0);
  TextBuilder joined(heap);
  bool first = true;
  for (const Value& item : items_of(bound[0], heap)) {
    if (!item.is_text()) fail(fmt::format("join: a {} among the strings", item.type_name()));
    if (!first) joined.append(method.receiver.as_text());
    joined.append(item.as_text());
    first = false;
  }
  return std::move(joined).value();
}

Value find_in_text(const Method& method, const Arguments& arguments, Direction direction,
                   Heap& heap) {
  const BoundArguments bound(method.name, arguments, {"sub"});
  const std::string_view bytes = method.receiver.bytes();
  const std::size_t at = Search(bound.text(0).bytes(), direction, heap).next(bytes);
  if (at == std::string_view::npos) return Value::integer(-1);
  return Value::integer(static_cast<std::int64_t>(count_characters(bytes.substr(0, at))));
}

Value count_in_text(const Method& method, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound(method.name, arguments, {"sub"});
  std::string_view rest = method.receiver.bytes();
  const std::string_view part = bound.text(0).bytes();
  if (part.empty()) return Value::integer(static_cast<std::int64_t>(count_characters(rest) + 1));
  const Search search(part, Direction::kForward, heap);
  std::int64_t count = 0;
  for (std::size_t at = search.next(rest); at != std::string_view::npos; at = search.next(rest)) {
    heap.step();
    rest.remove_prefix(at + part.size());
    ++count;
  }
  return Value::integer(count);
}

// Implements "isdigit" and its kin: true when there are characters and all are of the class.
template <class Fits>
Value all_characters(const Method& method, const Arguments& arguments, Heap& heap,
                     const Fits& fits) {
  const BoundArguments bound(method.name, arguments, {});
  const std::string_view bytes = method.receiver.bytes();
  heap.read_characters(bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += character_at(bytes, at).bytes) {
    if (!fits(character_at(bytes, at).code)) return Value::boolean(false);
  }
  return Value::boolean(!bytes.empty());
}

Value split_method(const Method& method, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound(method.name, arguments, {"sep", "maxsplit"});
  const OriginText& text = method.receiver.as_text();
  const auto separator = optional_text(bound, 0);
  const std::int64_t most = bound.integer_or(1, -1);
  return heap.list(method.name == "rsplit" ? split_from_right(text, separator, most, heap)
                                           : split(text, separator, most, heap));
}

Value split_lines_method(const Method& method, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound(method.name, arguments, {"keepends"});
  return heap.list(split_lines(method.receiver.as_text(), bound.flag_or(0, false), heap));
}

Value remove_affix(const Method& method, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound(method.name, arguments, {"affix"});
  const OriginText& text = method.receiver.as_text();
  const std::string_view affix = bound.text(0).bytes();
  if (method.name == "removeprefix") {
    const bool has = text.bytes().starts_with(affix);
    return heap.text(text, has ? affix.size() : 0, text.size());
  }
  const bool has = text.bytes().ends_with(affix);
  return heap.text(text, 0, text.size() - (has ? affix.size() : 0));
}

Value call_case_method(const Method& method, const Arguments& arguments, Case to, Heap& heap) {
  const BoundArguments bound(method.name, arguments, {});
  return change_case(method.receiver.as_text(), to, heap);
}

Value call_text_method(const Method& method, const Arguments& arguments, Heap& heap) {
  const std::string_view name = method.name;
  const OriginText& text = method.receiver.as_text();
  const std::string_view bytes = text.bytes();
  if (name == "strip") return strip_method(method, arguments, Side::kBoth, heap);
  if (name == "lstrip") return strip_method(method, arguments, Side::kLeft, heap);
  if (name == "rstrip") return strip_method(method, arguments, Side::kRight, heap);
  if (name == "split" || name == "rsplit") return split_method(method, arguments, heap);
  if (name == "splitlines") return split_lines_method(method, arguments, heap);
  if (name == "startswith") {
    return affix_method(method, arguments, heap,
                        [&](std::string_view a) { return bytes.starts_with(a); });
  }
  if (name == "endswith") {
    return affix_method(method, arguments, heap,
                        [&](std::string_view a) { return bytes.ends_with(a); });
  }
  if (name == "removeprefix" || name == "removesuffix")
    return remove_affix(method, arguments, heap);
  if (name == "replace") {
    const BoundArguments bound(name, arguments, {"old", "new", "count"});
    return replace(text, bound.text(0), bound.text(1), bound.integer_or(2, -1), heap);
  }
  if (name == "format") return format_braces(method.receiver, arguments, heap);
  if (name == "join") return join_method(method, arguments, heap);
  if (name == "upper") return call_case_method(method, arguments, Case::kUpper, heap);
  if (name == "lower") return call_case_method(method, arguments, Case::kLower, heap);
  if (name == "title") return call_case_method(method, arguments, Case::kTitle, heap);
  if (name == "capitalize") return call_case_method(method, arguments, Case::kCapitalised, heap);
  if (name == "find") return find_in_text(method, arguments, Direction::kForward, heap);
  if (name == "rfind") return find_in_text(method, arguments, Direction::kBackward, heap);
  if (name == "count") return count_in_text(method, arguments, heap);
  if (name == "isspace") return all_characters(method, arguments, heap, is_space);
  if (name == "isalpha") return all_characters(method, arguments, heap, is_letter);
  if (name == "isdigit") return all_characters(method, arguments, heap, is_digit);
  fail_unknown(method);
}

Value call_list_method(const Method& method, const Arguments& arguments, Heap& heap) {
  std::vector<Value>& items = method.receiver.as_list().items;
  const std::string_view name = method.name;
  if (method.receiver.as_list().kind != ListKind::kList) fail_unknown(method);
  if (name == "append") {
    const BoundArguments bound(name, arguments, {"item"});
    bound.require(0);
    heap.reserve_values(1);
    items.push_back(bound[0]);
    return Value::none();
  }
  if (name == "pop") {
    const BoundArguments bound(name, arguments, {"index"});
    std::int64_t index = bound.integer_or(0, -1);
    if (index < 0) index += static_cast<std::int64_t>(items.size());
    if (index < 0 || index >= static_cast<std::int64_t>(items.size())) fail("pop: no such item");
    const Value item = items[static_cast<std::size_t>(index)];
    heap.step(1 + items.size() / 16);
    items.erase(items.begin() + index);
    return item;
  }
  if (name == "index" || name == "count") {
    const BoundArguments bound(name, arguments, {"item"});
    bound.require(0);
    const auto same = [&](const Value& item) { return equal(item, bound[0], heap); };
    if (name == "count") return Value::integer(std::count_if(items.begin(), items.end(), same));
    const auto found = std::find_if(items.begin(), items.end(), same);
    if (found == items.end()) fail("index: no such item");
    return Value::integer(found - items.begin());
  }
  fail_unknown(method);
}

Value list_entries(const Dict& dict, std::string_view name, Heap& heap) {
  heap.reserve_values(dict.size());
  std::vector<Value> listed;
  for (const Dict::Entry& entry : dict.entries()) {
    if (name == "items") {
      listed.push_back(heap.pair(entry.key, entry.value));
    } else {
      listed.push_back(name == "keys" ? entry.key : entry.value);
    }
  }
  return heap.list(std::move(listed));
}

Value call_dict_method(const Method& method, const Arguments& arguments, Heap& heap) {
  Dict& dict = method.receiver.as_dict();
  const std::string_view name = method.name;
  if (name == "items" || name == "keys" || name == "values") {
    const BoundArguments bound(name, arguments, {});
    return list_entries(dict, name, heap);
  }
  if (name == "get" || name == "pop") {
    const BoundArguments bound(name, arguments, {"key", "default"});
    bound.require(0);
    const Value* const found = dict.find(bound[0], heap);
    if (found == nullptr && name == "pop" && !bound.has(1)) fail("pop: no such key");
    if (found == nullptr) return bound.has(1) ? bound[1] : Value::none();
    const Value value = *found;
    if (name == "pop") dict.erase(bound[0], heap);
    return value;
  }
  if (name == "update") {
    const BoundArguments bound(name, {arguments.positional, {}}, {"other"});
    if (bound.has(0)) {
      if (!bound[0].is_dict()) fail("update: the argument is not a dict");
      heap.reserve_values(2 * bound[0].as_dict().size());
      const std::vector<Dict::Entry> entries = bound[0].as_dict().entries();
      for (const Dict::Entry& entry : entries) dict.set(entry.key, entry.value, heap);
    }
    for (const auto& [key, value] : arguments.named) {
      dict.set(heap.text(std::string(key)), value, heap);
    }
    return Value::none();
  }
  if (name == "copy") {
    const BoundArguments bound(name, arguments, {});
    return heap.copy(dict);
  }
  fail_unknown(method);
}

}  // namespace

std::string_view find_method(Kind kind, std::string_view name) {
  std::span<const std::string_view> names;
  if (kind == Kind::kText) names = kTextMethods;
  if (kind == Kind::kList) names = kListMethods;
  if (kind == Kind::kDict) names = kDictMethods;
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::string_view() : *found;
}

Value call_method(const Method& method, const Arguments& arguments, Heap& heap) {
  heap.step();
  switch (method.receiver.kind()) {
    case Kind::kText:
      heap.read_bytes(method.receiver.bytes().size());
      return call_text_method(method, arguments, heap);
    case Kind::kList:
      return call_list_method(method, arguments, heap);
    default:
      return call_dict_method(method, arguments, heap);
  }
}

Value loop_attribute(const Loop& loop, std::string_view name, Heap& heap) {
  const std::size_t count = loop.items->size();
  const auto number = [](std::size_t value) {
    return Value::integer(static_cast<std::int64_t>(value));
  };
  if (name == "index") return number(loop.index + 1);
  if (name == "index0") return number(loop.index);
  if (name == "revindex") return number(count - loop.index);
  if (name == "revindex0") return number(count - loop.index - 1);
  if (name == "first") return Value::boolean(loop.index == 0);
  if (name == "last") return Value::boolean(loop.index + 1 == count);
  if (name == "length") return number(count);
  if (name == "depth") return number(loop.depth);
  if (name == "depth0") return number(loop.depth - 1);
  if (name == "previtem" && loop.index > 0) return (*loop.items)[loop.index - 1];
  if (name == "nextitem" && loop.index + 1 < count) return (*loop.items)[loop.index + 1];
  return heap.undefined("loop." + abbreviated(name, 100));
}

}  // namespace pagoda::text::jinja
