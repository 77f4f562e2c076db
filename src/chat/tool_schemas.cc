#include "chat/tool_schemas.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace pagoda::chat {
namespace {

using Json = nlohmann::ordered_json;

const Json* member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// The types that a schema allows, as bits.
enum Types : unsigned { kText = 1, kNull = 2, kOther = 4, kAll = 7 };

unsigned type_named(const Json& name) {
  if (name == "string") return kText;
  return name == "null" ? kNull : kOther;
}

unsigned type_of_value(const Json& value) {
  if (value.is_string()) return kText;
  return value.is_null() ? kNull : kOther;
}

constexpr int kDepthMax = 8;

// Bounds the cost of all tools of a request: elements of schemas that are looked at, repeatedly
// where references repeat them, and shapes, of some 200 bytes each. Types beyond the budget are
// unknown.
struct SchemaBudget {
  std::int64_t elements = 1 << 20;
  std::int64_t shapes = 1 << 16;
};

// The parameters of one tool, with an index of what its references may name.
class SchemaRoot {
 public:
  SchemaRoot(const Json& parameters, SchemaBudget& budget)
      : parameters_(parameters), budget_(budget) {}

  SchemaBudget& budget() const { return budget_; }

  // Finds "#/$defs/City" within the parameters; nullptr for other references.
  const Json* find(const Json& reference) {
    if (!reference.is_string()) return nullptr;
    if (!is_indexed_) add_definitions();
    const auto found = definitions_.find(reference.get_ref<const std::string&>());
    return found == definitions_.end() ? nullptr : found->second;
  }

 private:
  void add_definitions() {
    is_indexed_ = true;
    for (const std::string place : {"$defs", "definitions"}) {
      const Json* const all = member(parameters_, place.c_str());
      if (all == nullptr || !all->is_object()) continue;
      for (const auto& [name, schema] : all->items()) {
        definitions_.emplace("#/" + place + "/" + name, &schema);
      }
    }
  }

  const Json& parameters_;
  SchemaBudget& budget_;
  bool is_indexed_ = false;
  std::map<std::string, const Json*, std::less<>> definitions_ = {};
};

// `budget` counts the schemas that may still be looked at, because references may repeat.
unsigned types_of(const Json& schema, SchemaRoot& root, int depth, int& budget) {
  if (depth == 0 || --budget < 0 || --root.budget().elements < 0) return kAll;
  unsigned types = kAll;
  if (const Json* const type = member(schema, "type")) {
    unsigned named = type->is_string() ? type_named(*type) : 0U;
    if (type->is_array()) {
      root.budget().elements -= static_cast<std::int64_t>(type->size());
      for (const Json& one : *type) named |= type_named(one);
    }
    if (named != 0) types &= named;
  }
  if (const Json* const value = member(schema, "const")) types &= type_of_value(*value);
  if (const Json* const values = member(schema, "enum"); values != nullptr && values->is_array()) {
    unsigned listed = 0;
    root.budget().elements -= static_cast<std::int64_t>(values->size());
    for (const Json& value : *values) listed |= type_of_value(value);
    if (listed != 0) types &= listed;
  }
  for (const char* const name : {"anyOf", "oneOf"}) {
    const Json* const choices = member(schema, name);
    if (choices == nullptr || !choices->is_array() || choices->empty()) continue;
    unsigned any = 0;
    for (const Json& choice : *choices) any |= types_of(choice, root, depth - 1, budget);
    types &= any;
  }
  if (const Json* const all = member(schema, "allOf"); all != nullptr && all->is_array()) {
    for (const Json& one : *all) types &= types_of(one, root, depth - 1, budget);
  }
  const Json* const reference = member(schema, "$ref");
  const Json* const target = reference == nullptr ? nullptr : root.find(*reference);
  if (target != nullptr) types &= types_of(*target, root, depth - 1, budget);
  return types;
}

ArgumentType type_of_schema(const Json& schema, SchemaRoot& root, int& budget) {
  switch (types_of(schema, root, kDepthMax, budget)) {
    case kText:
      return ArgumentType::kString;
    case kText | kNull:
      return ArgumentType::kNullableString;
    case kNull:
    case kOther:
    case kNull | kOther:
      return ArgumentType::kJson;
    default:
      return ArgumentType::kBySchema;
  }
}

bool names_type(const Json& schema, const char* name) {
  const Json* const type = member(schema, "type");
  if (type == nullptr) return false;
  return *type == name ||
         (type->is_array() && std::find(type->begin(), type->end(), Json(name)) != type->end());
}

ArgumentType type_of_argument(const Json& schema, SchemaRoot& root) {
  int budget = 256;
  return type_of_schema(schema, root, budget);
}

// Reads what the arguments of one tool have within them. All together look at so many schemas.
class ShapeReader {
 public:
  explicit ShapeReader(SchemaRoot& root) : root_(root) {}

  void read_members(const Json& schema, ArgumentShape& shape, int depth = kDepthMax) {
    const bool is_text =
        shape.type == ArgumentType::kString || shape.type == ArgumentType::kNullableString;
    if (!is_text) add(schema, depth, shape);
  }

 private:
  // Adds what the schema and those that it refers to say of members and elements.
  void add(const Json& schema, int depth, ArgumentShape& shape) {
    if (depth == 0 || --budget_ < 0 || --root_.budget().shapes < 0) return;
    const Json* const properties = member(schema, "properties");
    const Json* const items = member(schema, "items");
    shape.is_object = shape.is_object || names_type(schema, "object") || properties != nullptr;
    shape.is_array = shape.is_array || names_type(schema, "array") || items != nullptr;
    if (properties != nullptr && properties->is_object()) {
      for (const auto& [key, value] : properties->items()) {
        if (!shape.members.contains(key)) shape.members.emplace(key, read(value, depth - 1));
        if (budget_ <= 0 || root_.budget().shapes <= 0) return;
      }
    }
    if (items != nullptr && shape.items.empty()) shape.items.push_back(read(*items, depth - 1));
    for (const char* const name : {"anyOf", "oneOf", "allOf"}) {
      const Json* const branches = member(schema, name);
      if (branches == nullptr || !branches->is_array()) continue;
      for (const Json& branch : *branches) add(branch, depth - 1, shape);
    }
    const Json* const reference = member(schema, "$ref");
    const Json* const target = reference == nullptr ? nullptr : root_.find(*reference);
    if (target != nullptr) add(*target, depth - 1, shape);
  }

  ArgumentShape read(const Json& schema, int depth) {
    ArgumentShape shape;
    shape.type = type_of_schema(schema, root_, budget_);
    read_members(schema, shape, depth);
    return shape;
  }

  SchemaRoot& root_;
  int budget_ = 4096;
};

std::uint64_t bytes_of(const std::map<std::string, ArgumentShape, std::less<>>& shapes) {
  constexpr std::uint64_t kNodeBytes = 64;  // of a map, beside what it holds
  std::uint64_t bytes = 0;
  for (const auto& [key, shape] : shapes) {
    bytes += kNodeBytes + sizeof(shape) + sizeof(key) + key.size() + bytes_of(shape.members);
    for (const ArgumentShape& item : shape.items) bytes += sizeof(item) + bytes_of(item.members);
  }
  return bytes;
}

}  // namespace

ToolSchemas::ToolSchemas(const Json& tools, bool with_members) {
  if (!tools.is_array()) return;
  SchemaBudget budget;
  for (const Json& tool : tools) {
    const Json* const nested = member(tool, "function");
    const Json& function = nested == nullptr ? tool : *nested;
    const Json* const name = member(function, "name");
    if (name == nullptr || !name->is_string()) continue;
    auto& arguments = tools_[name->get<std::string>()].arguments;
    const Json* const parameters = member(function, "parameters");
    const Json* const properties =
        parameters == nullptr ? nullptr : member(*parameters, "properties");
    if (properties == nullptr || !properties->is_object()) continue;
    SchemaRoot root(*parameters, budget);
    ShapeReader shapes(root);
    for (const auto& [key, schema] : properties->items()) {
      ArgumentShape& shape = arguments[key];
      shape.type = type_of_argument(schema, root);
      if (with_members) shapes.read_members(schema, shape);
    }
  }
}

std::vector<std::string> ToolSchemas::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tool] : tools_) names.push_back(name);
  return names;
}

void ToolSchemas::keep(const std::vector<std::string>& names) {
  const std::set<std::string_view> kept(names.begin(), names.end());
  std::erase_if(tools_, [&](const auto& tool) { return !kept.contains(tool.first); });
}

void ToolSchemas::enforce(std::string_view name) {
  const auto found = tools_.find(name);
  if (found != tools_.end()) found->second.is_enforced = true;
}

bool ToolSchemas::is_enforced(std::string_view name) const {
  const auto found = tools_.find(name);
  return found != tools_.end() && found->second.is_enforced;
}

std::uint64_t ToolSchemas::bytes() const {
  constexpr std::uint64_t kNodeBytes = 128;  // of a map, with its string
  std::uint64_t bytes = 0;
  for (const auto& [name, tool] : tools_) {
    bytes += 2 * kNodeBytes + name.size() + bytes_of(tool.arguments);
  }
  return bytes;
}

ArgumentType ToolSchemas::type_of(std::string_view tool, std::string_view argument) const {
  return shape_of(tool, argument).type;
}

const ArgumentShape& ToolSchemas::shape_of(std::string_view tool, std::string_view argument) const {
  static const ArgumentShape kNothing;
  const auto found = tools_.find(tool);
  if (found == tools_.end()) return kNothing;
  const auto shape = found->second.arguments.find(argument);
  return shape == found->second.arguments.end() ? kNothing : shape->second;
}

}  // namespace pagoda::chat
