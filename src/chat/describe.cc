#include "chat/describe.h"

namespace pagoda::chat {
namespace {

using Json = nlohmann::ordered_json;

void add_text(Json& object, const char* name, const std::string& text) {
  if (!text.empty()) object[name] = text;
}

const char* syntax_name(const ToolCallForm& calls) {
  if (calls.syntax == CallSyntax::kJsonObject) return "json";
  switch (calls.arguments) {
    case ArgumentSyntax::kJson:
      return "name, then json";
    case ArgumentSyntax::kTagged:
      return "name, then tagged values";
    case ArgumentSyntax::kQuoted:
      return "name, then quoted values";
    case ArgumentSyntax::kKeywords:
      return "pythonic";
  }
  return "";
}

Json describe_calls(const ToolCallForm& calls) {
  Json json = Json::object();
  json["syntax"] = syntax_name(calls);
  add_text(json, "before", calls.before);
  add_text(json, "section_begin", calls.section_begin);
  add_text(json, "call_begin", calls.call_begin);
  if (calls.syntax == CallSyntax::kJsonObject) {
    json["name_key"] = calls.name_is_key ? "(the name itself)" : calls.name_key;
    if (!calls.name_is_key) json["arguments_key"] = calls.arguments_key;
  } else {
    add_text(json, "name_prefix", calls.name_prefix);
    add_text(json, "name_end", calls.name_end);
    if (calls.has_slot) json["slot"] = calls.slot_is_id ? "id" : "number";
    add_text(json, "arguments_begin", calls.arguments_begin);
    add_text(json, "quote", calls.quote);
    add_text(json, "key_begin", calls.tagged.key_begin);
    for (const KeyEnd& end : calls.tagged.key_ends) json["key_ends"].push_back(end.text);
    add_text(json, "value_end", calls.tagged.value_end);
    add_text(json, "text_begin", calls.tagged.text_begin);
    add_text(json, "text_end", calls.tagged.text_end);
  }
  add_text(json, "call_end", calls.call_end);
  add_text(json, "separator", calls.separator);
  add_text(json, "section_end", calls.section_end);
  return json;
}

}  // namespace

Json describe_form(const FoundForm& found) {
  const AnswerForm& form = found.form;
  Json json = Json::object();
  Json calls = {{"from", found.calls_from}};
  if (form.name != found.calls_from) calls["parser"] = form.name;
  if (form.calls) calls.update(describe_calls(*form.calls));
  calls["template_shows_tools"] = found.shows_tools;
  calls["template_shows_calls"] = found.shows_calls;
  json["tool_calls"] = std::move(calls);
  Json reasoning = {{"from", found.reasoning_from}};
  if (form.channels) {
    reasoning["channels"] = true;
  } else if (form.reasoning) {
    reasoning["begin"] = form.reasoning->begin;
    reasoning["end"] = form.reasoning->end;
  }
  json["reasoning"] = std::move(reasoning);
  Json content = Json::object();
  add_text(content, "begin", form.content_begin);
  add_text(content, "end", form.content_end);
  add_text(content, "turn_end", form.turn_end);
  if (!content.empty()) json["content"] = std::move(content);
  return json;
}

}  // namespace pagoda::chat
