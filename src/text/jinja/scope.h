// The names a piece of template code sees: its own, then those of the code around it.
#pragma once

#include <string>
#include <unordered_map>

#include "text/jinja/value.h"

namespace pagoda::text::jinja {

class Scope {
 public:
  explicit Scope(Scope* parent) : parent_(parent) {}

  void set(const std::string& name, const Value& value) { values_.insert_or_assign(name, value); }
  void clear() { values_.clear(); }

  // Null when the name is nowhere.
  const Value* find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) {
      const auto found = scope->values_.find(name);
      if (found != scope->values_.end()) return &found->second;
    }
    return nullptr;
  }

 private:
  Scope* parent_;
  std::unordered_map<std::string, Value> values_;
};

}  // namespace pagoda::text::jinja
