#include "server/api/function_tools.h"

#include <utility>

#include "server/api/cache_marks.h"
#include "server/api/message_fields.h"
#include "server/fields.h"

namespace pagoda::server {
namespace {

Json take_function(Json& given, const Fields& tool, const FunctionToolStyle& style) {
  Json function = {{"name", tool.required_text("name")}};
  if (tool.text("description")) function["description"] = std::move(given["description"]);
  if (style.needs_schema) tool.require(style.schema);
  if (tool.object(style.schema) != nullptr) {
    function["parameters"] = std::move(given[style.schema]);
  }
  if (const auto strict = tool.boolean("strict")) function["strict"] = *strict;
  return function;
}

}  // namespace

void take_function_tools(Json& body, const FunctionToolStyle& style, TranslationMemory& memory,
                         TranslatedChat& chat) {
  if (read_objects(Fields(body), "tools") == nullptr) return;
  Json& given = body["tools"];
  Json tools = Json::array();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Fields tool(given[i], element_path("tools", i));
    if (style.needs_type) tool.require("type");
    read_mark(tool);
    const auto type = tool.text("type");
    if (type && *type != style.function) {
      // A mark behind a tool that is left out stands behind those before it.
      if (!tools.empty()) copy_mark(given[i], tools.back());
      continue;
    }
    memory.add(kTranslatedBytes);
    Json entry = {{"type", "function"}};
    entry["function"] = take_function(given[i], tool, style);
    copy_mark(given[i], entry);
    tools.push_back(std::move(entry));
    chat.paths.tools.push_back(i);
  }
  chat.paths.schema = style.schema;
  if (!tools.empty()) chat.body["tools"] = std::move(tools);
}

}  // namespace pagoda::server
