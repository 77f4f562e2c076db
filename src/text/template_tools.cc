#include "text/template_tools.h"

#include <algorithm>

namespace pagoda::text {
namespace {

struct Lacks {
  bool description = false;
  bool parameters = false;
  bool properties = false;

  bool any() const { return description || parameters || properties; }
};

bool has_object(const ChatJson& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object();
}

bool has_text(const ChatJson& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string();
}

// Finds the members of a function that the template cannot do without.
Lacks lacks_of(const ChatJson& function, const TemplateTraits& traits) {
  const bool has_schema = has_object(function, "parameters");
  return {.description = !traits.tools_without_texts && !has_text(function, "description"),
          .parameters = !traits.tools_without_schema && !has_schema,
          .properties = !traits.schemas_without_properties && has_schema &&
                        !has_object(function["parameters"], "properties")};
}

bool lacks_anything(const ChatJson& tool, const TemplateTraits& traits) {
  return tool.is_object() && has_object(tool, "function") &&
         lacks_of(tool["function"], traits).any();
}

void fit(ChatJson& function, const TemplateTraits& traits) {
  const Lacks lacks = lacks_of(function, traits);
  if (lacks.description) function["description"] = "";
  if (!lacks.parameters && !lacks.properties) return;
  ChatJson& schema = function["parameters"];
  if (!schema.is_object()) schema = ChatJson::object();
  if (!schema.contains("type")) schema["type"] = "object";
  schema["properties"] = ChatJson::object();
}

}  // namespace

std::optional<ChatJson> fitted_tools(const ChatJson& tools, const TemplateTraits& traits) {
  if (tools.is_null() && !traits.null_tools) return ChatJson::array();
  const auto lacks = [&](const ChatJson& tool) { return lacks_anything(tool, traits); };
  if (!tools.is_array() || std::none_of(tools.begin(), tools.end(), lacks)) return std::nullopt;
  ChatJson fitted = tools;
  for (ChatJson& tool : fitted) {
    if (lacks(tool)) fit(tool["function"], traits);
  }
  return fitted;
}

}  // namespace pagoda::text
