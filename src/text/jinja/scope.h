// The names that template code sees: its own, then those of the enclosing code.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>

#include "text/jinja/value.h"

namespace pagoda::text::jinja {

class Scope {
 public:
  static constexpr std::size_t kNameBytes = 96;

  explicit Scope(Scope* parent)
      : parent_(parent), depth_(parent == nullptr ? 0 : parent->depth_ + 1) {}

  // The name must outlive the scope. Returns true when the scope takes more memory than ever
  // before.
  bool set(std::string_view name, const Value& value) {
    values_.insert_or_assign(name, value);
    const bool grows = values_.size() > most_;
    most_ = std::max(most_, values_.size());
    return grows;
  }
  void clear() { values_.clear(); }

  // Returns nullptr when no scope has the name.
  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) {
      const auto found = scope->values_.find(name);
      if (found != scope->values_.end()) return &found->second;
    }
    return nullptr;
  }
  // The number of enclosing scopes.
  std::size_t depth() const { return depth_; }

 private:
  Scope* parent_;
  std::size_t depth_;
  std::size_t most_ = 0;  // the largest number of names so far
  std::map<std::string_view, Value> values_;
};

}  // namespace pagoda::text::jinja
