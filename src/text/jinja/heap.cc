#include "text/jinja/heap.h"

#include <fmt/format.h>

namespace pagoda::text::jinja {

void Heap::step(std::uint64_t count) {
  steps_ += count;
  if (steps_ > limits_.steps)
    fail_limit(fmt::format("rendering takes more than {} steps", limits_.steps));
}

void Heap::reserve_text(std::size_t bytes) {
  if (bytes > limits_.text_bytes - text_bytes_) {
    fail_limit(fmt::format("rendering makes more than {} bytes of text", limits_.text_bytes));
  }
  text_bytes_ += bytes;
}

Value Heap::text(OriginText text) {
  step();
  reserve_text(text.size());
  return Value(&texts_.emplace_back(std::move(text)));
}

Value Heap::list(std::vector<Value> items, ListKind kind) {
  step(1 + items.size());
  return Value(&lists_.emplace_back(List{kind, std::move(items)}));
}

Value Heap::pair(const Value& first, const Value& second) {
  return list({first, second}, ListKind::kTuple);
}

Loop& Heap::loop(std::vector<Value> items, std::size_t depth) {
  const Value listed = list(std::move(items));
  return loops_.emplace_back(Loop{&listed.as_list().items, 0, depth});
}

Heap::Level::Level(Heap& heap) : heap_(heap) {
  if (heap.depth_ >= heap.limits_.depth) {
    fail_limit(fmt::format("rendering goes deeper than {} levels", heap.limits_.depth));
  }
  ++heap.depth_;
}

}  // namespace pagoda::text::jinja
