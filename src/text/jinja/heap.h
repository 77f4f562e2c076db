// Where the values of one rendering live, and the limits that keep it bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/scope.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

struct RenderLimits {
  std::uint32_t depth = 1000;           // of calls and expressions within each other
  std::uint64_t steps = 10'000'000;     // expressions evaluated and items made
  std::size_t text_bytes = 256U << 20;  // of all texts made on the way
  std::size_t output_bytes = 64U << 20;
};

class Heap {
 public:
  // What looking through a text costs.
  static constexpr std::size_t kBytesPerStep = 256;

  explicit Heap(const RenderLimits& limits) : limits_(limits) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  const RenderLimits& limits() const { return limits_; }
  // Counts work; throws when there was too much.
  void step(std::uint64_t count = 1);
  // Counts bytes about to be made.
  void reserve_text(std::size_t bytes);

  Value text(OriginText text);
  Value text(std::string bytes, Origin origin = {}) {
    return this->text(OriginText(std::move(bytes), origin));
  }
  Value list(std::vector<Value> items, ListKind kind = ListKind::kList);
  Value pair(const Value& first, const Value& second);
  Value dict() { return Value(&dicts_.emplace_back()); }
  Value make_namespace() { return Value(&dicts_.emplace_back(), Kind::kNamespace); }
  Value macro(Macro macro) { return Value(&macros_.emplace_back(macro)); }
  Value method(Method method) { return Value(&methods_.emplace_back(method)); }
  Value undefined(std::string name) {
    return Value::undefined(&names_.emplace_back(std::move(name)));
  }
  Loop& loop(std::vector<Value> items, std::size_t depth);
  Scope& scope(Scope* parent) { return scopes_.emplace_back(parent); }

  // One level deeper while it lives.
  class Level {
   public:
    explicit Level(Heap& heap);
    ~Level() { --heap_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Heap& heap_;
  };

 private:
  RenderLimits limits_;
  std::uint32_t depth_ = 0;
  std::uint64_t steps_ = 0;
  std::size_t text_bytes_ = 0;
  std::deque<OriginText> texts_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Loop> loops_;
  std::deque<Macro> macros_;
  std::deque<Method> methods_;
  std::deque<std::string> names_;
  std::deque<Scope> scopes_;
};

}  // namespace pagoda::text::jinja
