#include "text/jinja/heap.h"

#include <fmt/format.h>

#include "text/jinja/fault.h"
#include "text/jinja/text_builder.h"

namespace pagoda::text::jinja {

void Heap::step(std::uint64_t count) {
  if (count > limits_.steps - steps_) {
    fail_limit(fmt::format("rendering takes more than {} steps", limits_.steps));
  }
  steps_ += count;
  if (steps_ < asks_at_) return;
  asks_at_ = steps_ + kStepsUnasked;
  if (!memory_.is_open()) fail_exhausted("there is no memory for what rendering makes");
}

void Heap::reserve(std::size_t bytes) {
  if (bytes > limits_.bytes - bytes_) {
    fail_limit(fmt::format("rendering makes more than {} bytes", limits_.bytes));
  }
  if (!memory_.add(bytes)) {
    fail_exhausted("there is no memory for what rendering makes");
  }
  bytes_ += bytes;
}

void Heap::reserve_values(std::size_t count) {
  step(count);
  reserve(count * sizeof(Value));
}

Value Heap::text(std::string bytes, Origin origin) {
  reserve(bytes.size());
  return keep(OriginText(std::move(bytes), origin));
}

Value Heap::text(const OriginText& text, std::size_t begin, std::size_t end) {
  TextBuilder part(*this);
  part.append(text, begin, end);
  return std::move(part).value();
}

Value Heap::keep(OriginText text) {
  reserve(sizeof(OriginText::Run));
  return Value(&make(texts_, std::move(text)));
}

Value Heap::list(std::vector<Value> items, ListKind kind) {
  reserve_values(items.size());
  return Value(&make(lists_, List{kind, std::move(items)}));
}

Value Heap::pair(const Value& first, const Value& second) {
  return list({first, second}, ListKind::kTuple);
}

Value Heap::dict() { return Value(&make(dicts_)); }

Value Heap::copy(const Dict& dict) {
  step(dict.size());
  reserve(dict.size() * Dict::kEntryBytes);
  return Value(&make(dicts_, dict));
}

Value Heap::make_namespace() { return Value(&make(dicts_), Kind::kNamespace); }

Value Heap::macro(Macro macro) { return Value(&make(macros_, macro)); }

Value Heap::method(const Method& method) { return Value(&make(methods_, method)); }

Value Heap::undefined(std::string name) {
  reserve(name.size());
  return Value::undefined(&make(names_, std::move(name)));
}

Loop& Heap::loop(std::vector<Value> items, std::size_t depth) {
  const Value listed = list(std::move(items));
  return make(loops_, Loop{&listed.as_list().items, 0, depth});
}

Scope& Heap::scope(Scope* parent) { return make(scopes_, parent); }

Heap::Level::Level(Heap& heap) : heap_(heap) {
  if (heap.depth_ >= heap.limits_.depth) {
    fail_limit(fmt::format("rendering goes deeper than {} levels", heap.limits_.depth));
  }
  ++heap.depth_;
}

}  // namespace pagoda::text::jinja
