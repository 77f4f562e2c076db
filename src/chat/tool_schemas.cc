#include "chat/tool_schemas.h"

#include <algorithm>

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

// "#/$defs/City" within the tool's parameters; nullptr for other references.
const Json* find_reference(const Json& reference, const Json& root) {
  if (!reference.is_string()) return nullptr;
  const auto& path = reference.get_ref<const std::string&>();
  for (const char* const place : {"$defs", "definitions"}) {
    const std::string prefix = "#/" + std::string(place) + "/";
    const Json* const all = path.starts_with(prefix) ? member(root, place) : nullptr;
    if (all != nullptr) return member(*all, path.substr(prefix.size()).c_str());
  }
  return nullptr;
}

// `budget` counts the schemas that may still be looked at, because references may repeat.
unsigned types_of(const Json& schema, const Json& root, int depth, int& budget) {
  if (depth == 0 || --budget < 0) return kAll;
  unsigned types = kAll;
  if (const Json* const type = member(schema, "type")) {
    unsigned named = type->is_string() ? type_named(*type) : 0U;
    if (type->is_array()) {
      for (const Json& one : *type) named |= type_named(one);
    }
    if (named != 0) types &= named;
  }
  if (const Json* const value = member(schema, "const")) types &= type_of_value(*value);
  if (const Json* const values = member(schema, "enum"); values != nullptr && values->is_array()) {
    unsigned listed = 0;
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
  const Json* const target = reference == nullptr ? nullptr : find_reference(*reference, root);
  if (target != nullptr) types &= types_of(*target, root, depth - 1, budget);
  return types;
}

ArgumentType type_of_schema(const Json& schema, const Json& root) {
  int budget = 256;
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

}  // namespace

ToolSchemas::ToolSchemas(const Json& tools) {
  if (!tools.is_array()) return;
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
    for (const auto& [key, schema] : properties->items()) {
      arguments[key] = type_of_schema(schema, *parameters);
    }
  }
}

void ToolSchemas::keep(const std::vector<std::string>& names) {
  std::erase_if(tools_, [&](const auto& tool) {
    return std::find(names.begin(), names.end(), tool.first) == names.end();
  });
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
    bytes += 2 * kNodeBytes + name.size();
    for (const auto& [key, type] : tool.arguments) bytes += kNodeBytes + key.size();
  }
  return bytes;
}

ArgumentType ToolSchemas::type_of(std::string_view tool, std::string_view argument) const {
  const auto found = tools_.find(tool);
  if (found == tools_.end()) return ArgumentType::kBySchema;
  const auto type = found->second.arguments.find(argument);
  return type == found->second.arguments.end() ? ArgumentType::kBySchema : type->second;
}

}  // namespace pagoda::chat
