// The values of one rendering live here, within limits.
//
// Code that makes a value reserves its bytes first; code that reads one counts steps, each about
// the work of an expression. So the limits bound memory and time, whatever the template does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/dict.h"
#include "text/jinja/scope.h"
#include "text/jinja/value.h"
#include "text/memory_account.h"

namespace pagoda::text::jinja {

struct RenderLimits {
  std::uint32_t depth = 1000;        // nested calls and expressions
  std::uint64_t steps = 10'000'000;  // expressions evaluated, items made, bytes read
  std::size_t bytes = 256U << 20;    // everything that is made; nothing is freed before the end
  std::size_t output_bytes = 64U << 20;
  // Counts what is made, and is asked for 0 bytes every kStepsUnasked steps; kExhausted when it has
  // no more.
  MemoryAccount* account = nullptr;
};

inline constexpr std::uint64_t kStepsUnasked = 1 << 16;

class Heap {
 public:
  explicit Heap(const RenderLimits& limits) : limits_(limits), memory_(limits.account) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  const RenderLimits& limits() const { return limits_; }
  // Counts work; throws beyond the limit.
  void step(std::uint64_t count = 1);
  // Counts the work of comparing, copying or searching bytes in bulk.
  void read_bytes(std::size_t bytes) { step(bytes / 256); }
  // Counts the work of reading characters one by one.
  void read_characters(std::size_t bytes) { step(bytes / 16); }
  // Counts bytes about to be allocated; throws beyond the limit.
  void reserve(std::size_t bytes);
  // Calls step and reserve for `count` adjacent values.
  void reserve_values(std::size_t count);

  Value text(std::string bytes, Origin origin = {});
  Value text(const OriginText& text, std::size_t begin, std::size_t end);
  // Takes a text whose bytes were counted while it was made (text_builder.h).
  Value keep(OriginText text);
  Value list(std::vector<Value> items, ListKind kind = ListKind::kList);
  Value pair(const Value& first, const Value& second);
  Value dict();
  Value copy(const Dict& dict);
  Value make_namespace();
  Value macro(Macro macro);
  Value method(const Method& method);
  // `name` is for a message; the head of a long one is enough.
  Value undefined(std::string name);
  Loop& loop(std::vector<Value> items, std::size_t depth);
  Scope& scope(Scope* parent);

  // Counts one level of nesting while it lives.
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
  template <class T, class... Arguments>
  T& make(std::deque<T>& all, Arguments&&... arguments) {
    step();
    reserve(sizeof(T));
    return all.emplace_back(std::forward<Arguments>(arguments)...);
  }

  RenderLimits limits_;
  std::uint32_t depth_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t asks_at_ = kStepsUnasked;  // the step at which the account is asked
  std::size_t bytes_ = 0;
  CountedBytes memory_;
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
