#include "text/jinja/value.h"

#include <fmt/format.h>

#include <cmath>

namespace pagoda::text::jinja {
namespace {

std::string text_key(std::string_view bytes) { return 's' + std::string(bytes); }

// Equal keys give equal texts: 1, 1.0 and true are one key, as in Python.
std::string key_text(const Value& key) {
  switch (key.kind()) {
    case Kind::kText:
      return text_key(key.bytes());
    case Kind::kNone:
      return "n";
    case Kind::kBool:
    case Kind::kInteger:
      return fmt::format("i{}", key.as_integer());
    case Kind::kFloat: {
      const double real = key.as_real();
      const bool integral = std::trunc(real) == real && std::fabs(real) < 9e15;
      return integral ? fmt::format("i{}", static_cast<std::int64_t>(real))
                      : fmt::format("f{}", real);
    }
    default:
      fail(fmt::format("a {} cannot be a key", key.type_name()));
  }
}

}  // namespace

Value Value::boolean(bool value, Origin origin) {
  Value made(Kind::kBool, nullptr, origin);
  made.integer_ = value ? 1 : 0;
  return made;
}

Value Value::integer(std::int64_t value, Origin origin) {
  Value made(Kind::kInteger, nullptr, origin);
  made.integer_ = value;
  return made;
}

Value Value::real(double value, Origin origin) {
  Value made(Kind::kFloat, nullptr, origin);
  made.real_ = value;
  return made;
}

Value Value::function(Function function) {
  Value made(Kind::kFunction, nullptr);
  made.integer_ = static_cast<std::int64_t>(function);
  return made;
}

Dict& Value::as_dict() const {
  return is(Kind::kNamespace) ? *get<Dict>(Kind::kNamespace) : *get<Dict>(Kind::kDict);
}

bool Value::truthy() const {
  switch (kind_) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInteger:
      return integer_ != 0;
    case Kind::kFloat:
      return real_ != 0;
    case Kind::kText:
      return !as_text().empty();
    case Kind::kList:
      return as_list().kind == ListKind::kIterator || !as_list().items.empty();
    case Kind::kDict:
      return as_dict().size() > 0;
    default:
      return true;
  }
}

std::string_view Value::type_name() const {
  switch (kind_) {
    case Kind::kUndefined:
      return "undefined value";
    case Kind::kNone:
      return "none";
    case Kind::kBool:
      return "boolean";
    case Kind::kInteger:
      return "integer";
    case Kind::kFloat:
      return "float";
    case Kind::kText:
      return "string";
    case Kind::kList:
      return as_list().kind == ListKind::kTuple ? "tuple" : "list";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "namespace";
    case Kind::kMacro:
      return "macro";
    case Kind::kMethod:
      return "method";
    case Kind::kFunction:
      return "function";
    case Kind::kLoop:
      return "loop";
  }
  return {};
}

const Value* Dict::find(const Value& key) const {
  const auto found = places_.find(key_text(key));
  return found == places_.end() ? nullptr : &entries_[found->second].value;
}

const Value* Dict::find(std::string_view key) const {
  const auto found = places_.find(text_key(key));
  return found == places_.end() ? nullptr : &entries_[found->second].value;
}

void Dict::set(const Value& key, const Value& value) {
  const auto [found, is_new] = places_.try_emplace(key_text(key), entries_.size());
  if (is_new) {
    entries_.push_back({key, value});
  } else {
    entries_[found->second].value = value;
  }
}

bool Dict::erase(const Value& key) {
  const auto found = places_.find(key_text(key));
  if (found == places_.end()) return false;
  const std::size_t place = found->second;
  places_.erase(found);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(place));
  for (auto& [text, later] : places_) {
    if (later > place) --later;
  }
  return true;
}

}  // namespace pagoda::text::jinja
