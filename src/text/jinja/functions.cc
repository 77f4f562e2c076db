// Functions that templates call by name.
#include <fmt/format.h>

#include <array>

#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/show.h"

namespace pagoda::text::jinja {
namespace {

constexpr std::int64_t kRangeMax = 100'000;  // as in Jinja's sandbox
constexpr std::size_t kTimeFormatBytesMax = 256;

Value make_range(const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("range", arguments, {"start", "stop", "step"});
  bound.require(0);
  const std::int64_t first = bound.integer_or(0, 0);
  const std::int64_t start = bound.has(1) ? first : 0;
  const std::int64_t stop = bound.has(1) ? bound.integer_or(1, 0) : first;
  const std::int64_t step = bound.integer_or(2, 1);
  if (step == 0) fail("range: the step is 0");
  std::vector<Value> items;
  std::int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (static_cast<std::int64_t>(items.size()) == kRangeMax) {
      fail_limit(fmt::format("range: more than {} numbers", kRangeMax));
    }
    heap.step();
    items.push_back(Value::integer(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return heap.list(std::move(items));
}

// Fills the dict with the entries of a dict or of pairs, then with named arguments.
void fill(const Value& target, std::string_view callee, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound(callee, {arguments.positional, {}}, {"entries"});
  Dict& dict = target.as_dict();
  if (bound.has(0) && bound[0].is_dict()) {
    for (const Dict::Entry& entry : bound[0].as_dict().entries()) {
      dict.set(entry.key, entry.value, heap);
    }
  } else if (bound.has(0)) {
    for (const Value& pair : items_of(bound[0], heap)) {
      const std::vector<Value> parts = items_of(pair, heap);
      if (parts.size() != 2) fail(fmt::format("{}: an entry that is no pair", callee));
      dict.set(parts[0], parts[1], heap);
    }
  }
  for (const auto& [name, value] : arguments.named) {
    dict.set(heap.text(std::string(name)), value, heap);
  }
}

Value tell_time(const Arguments& arguments, std::time_t now, Heap& heap) {
  const BoundArguments bound("strftime_now", arguments, {"format"});
  const std::string format(bound.text(0).bytes());
  if (format.size() > kTimeFormatBytesMax) {
    fail_limit(fmt::format("strftime_now: a format of more than {} bytes", kTimeFormatBytesMax));
  }
  heap.step(format.size());
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 4096> buffer;
  const std::size_t bytes = std::strftime(buffer.data(), buffer.size(), format.c_str(), &local);
  return heap.text(std::string(buffer.data(), bytes));
}

}  // namespace

Value Interpreter::call_function(Function function, const Arguments& arguments) {
  switch (function) {
    case Function::kDict: {
      const Value dict = heap_.dict();
      fill(dict, "dict", arguments, heap_);
      return dict;
    }
    case Function::kNamespace: {
      const Value space = heap_.make_namespace();
      fill(space, "namespace", arguments, heap_);
      return space;
    }
    case Function::kRaiseException: {
      const BoundArguments bound("raise_exception", arguments, {"message"});
      fail(std::string(shown(bound[0], heap_).bytes()));
    }
    case Function::kRange:
      return make_range(arguments, heap_);
    case Function::kStrftimeNow:
      return tell_time(arguments, now_, heap_);
  }
  return {};
}

void bind_functions(Scope& scope) {
  scope.set("dict", Value::function(Function::kDict));
  scope.set("namespace", Value::function(Function::kNamespace));
  scope.set("raise_exception", Value::function(Function::kRaiseException));
  scope.set("range", Value::function(Function::kRange));
  scope.set("strftime_now", Value::function(Function::kStrftimeNow));
}

}  // namespace pagoda::text::jinja
