// The values of template expressions.
//
// A Value is small and copied freely; texts, lists and dicts belong to the Heap of their rendering
// and live until it ends. References are not counted and nothing is freed in between, so that
// cycles and deep nests cost nothing; the heap's limits bound what a rendering can take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "text/jinja/fault.h"
#include "text/origin_text.h"

namespace pagoda::text::jinja {

struct Statement;
class Dict;
class Scope;
struct List;
struct Loop;
struct Macro;
struct Method;

enum class Kind : std::uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInteger,
  kFloat,
  kText,
  kList,
  kDict,
  kNamespace,
  kMacro,
  kMethod,
  kFunction,
  kLoop,
};

enum class Function : std::uint8_t { kDict, kNamespace, kRaiseException, kRange, kStrftimeNow };

class Value {
 public:
  // An undefined value; `name` must outlive the rendering's values.
  Value() = default;
  static Value undefined(const std::string* name) { return Value(Kind::kUndefined, name); }
  static Value none(Origin origin = {}) { return Value(Kind::kNone, nullptr, origin); }
  static Value boolean(bool value, Origin origin = {});
  static Value integer(std::int64_t value, Origin origin = {});
  static Value real(double value, Origin origin = {});
  static Value function(Function function);
  explicit Value(const OriginText* text) : Value(Kind::kText, text) {}
  explicit Value(List* list) : Value(Kind::kList, list) {}
  explicit Value(Dict* dict, Kind kind = Kind::kDict) : Value(kind, dict) {}
  explicit Value(const Macro* macro) : Value(Kind::kMacro, macro) {}
  explicit Value(const Method* method) : Value(Kind::kMethod, method) {}
  explicit Value(const Loop* loop) : Value(Kind::kLoop, loop) {}

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return is(Kind::kUndefined); }
  bool is_none() const { return is(Kind::kNone); }
  bool is_text() const { return is(Kind::kText); }
  bool is_list() const { return is(Kind::kList); }
  bool is_dict() const { return is(Kind::kDict); }
  // A bool counts as an integer, as in Python.
  bool is_integral() const { return is(Kind::kInteger) || is(Kind::kBool); }
  bool is_number() const { return is_integral() || is(Kind::kFloat); }

  bool as_bool() const { return integer_ != 0; }
  std::int64_t as_integer() const { return integer_; }
  double as_real() const { return is(Kind::kFloat) ? real_ : static_cast<double>(integer_); }
  const OriginText& as_text() const { return *get<const OriginText>(Kind::kText); }
  std::string_view bytes() const { return as_text().bytes(); }
  List& as_list() const { return *get<List>(Kind::kList); }
  Dict& as_dict() const;  // of a dict or a namespace
  const Macro& as_macro() const { return *get<const Macro>(Kind::kMacro); }
  const Method& as_method() const { return *get<const Method>(Kind::kMethod); }
  const Loop& as_loop() const { return *get<const Loop>(Kind::kLoop); }
  Function as_function() const { return static_cast<Function>(integer_); }
  const std::string* undefined_name() const { return static_cast<const std::string*>(pointer_); }
  // Returns what a value points to that is neither a number nor a boolean.
  const void* address() const { return pointer_; }
  // Returns who wrote a number, a boolean or a none; texts record it by byte.
  Origin origin() const { return origin_; }

  bool truthy() const;
  // Returns "string", "list", …, for messages.
  std::string_view type_name() const;

 private:
  Value(Kind kind, const void* pointer, Origin origin = {})
      : kind_(kind), origin_(origin), pointer_(pointer) {}

  template <class T>
  T* get(Kind kind) const {
    ASSERT(kind_ == kind, "a value of another kind");
    return static_cast<T*>(const_cast<void*>(pointer_));
  }

  Kind kind_ = Kind::kUndefined;
  Origin origin_;
  union {
    const void* pointer_ = nullptr;
    std::int64_t integer_;
    double real_;
  };
};

enum class ListKind : std::uint8_t {
  kList,
  kTuple,
  kIterator,  // the result of filters like selectattr: true even when empty, not indexable
};

struct List {
  ListKind kind = ListKind::kList;
  std::vector<Value> items;
};

struct Macro {
  const Statement* statement;
  Scope* scope;  // where it was defined
};

struct Method {
  Value receiver;
  std::string_view name;
};

struct Loop {
  const std::vector<Value>* items;
  std::size_t index;
  std::size_t depth;
};

}  // namespace pagoda::text::jinja
