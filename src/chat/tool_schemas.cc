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

ArgumentType type_of_schema(const Json& schema) {
  const Json* const type = member(schema, "type");
  if (type != nullptr && type->is_string()) {
    return *type == "string" ? ArgumentType::kString : ArgumentType::kJson;
  }
  const Json* const values = member(schema, "enum");
  const bool all_text = values != nullptr && values->is_array() && !values->empty() &&
                        std::all_of(values->begin(), values->end(),
                                    [](const Json& value) { return value.is_string(); });
  return all_text ? ArgumentType::kString : ArgumentType::kBySchema;
}

}  // namespace

ToolSchemas::ToolSchemas(const Json& tools) {
  if (!tools.is_array()) return;
  for (const Json& tool : tools) {
    const Json* const nested = member(tool, "function");
    const Json& function = nested == nullptr ? tool : *nested;
    const Json* const name = member(function, "name");
    if (name == nullptr || !name->is_string()) continue;
    auto& arguments = tools_[name->get<std::string>()];
    const Json* const parameters = member(function, "parameters");
    const Json* const properties =
        parameters == nullptr ? nullptr : member(*parameters, "properties");
    if (properties == nullptr || !properties->is_object()) continue;
    for (const auto& [key, schema] : properties->items()) arguments[key] = type_of_schema(schema);
  }
}

ArgumentType ToolSchemas::type_of(std::string_view tool, std::string_view argument) const {
  const auto found = tools_.find(tool);
  if (found == tools_.end()) return ArgumentType::kBySchema;
  const auto type = found->second.find(argument);
  return type == found->second.end() ? ArgumentType::kBySchema : type->second;
}

}  // namespace pagoda::chat
