#include "text/jinja/value.h"

#include "text/jinja/dict.h"

namespace pagoda::text::jinja {

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

}  // namespace pagoda::text::jinja
