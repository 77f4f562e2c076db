#include "chat/tool_instructions.h"

#include <fmt/format.h>

#include <string>

#include "chat/call_literals.h"

namespace pagoda::chat {
namespace {

std::string example_arguments(const ToolCallForm& form) {
  switch (form.arguments) {
    case ArgumentSyntax::kTagged:
      return form.tagged.key_begin + "argument" + form.tagged.key_ends.front().text + "value" +
             form.tagged.value_end;
    case ArgumentSyntax::kKeywords:
      return "argument=\"value\"";
    case ArgumentSyntax::kQuoted:
      return "{argument:" + form.quote + "value" + form.quote + "}";
    case ArgumentSyntax::kJson:
      break;
  }
  return "{\"argument\": \"value\"}";
}

std::string instructions(const ToolCallForm& form, const text::ChatJson& tools) {
  const CallLiterals literals = call_literals(form, "NAME");
  std::string text = "You can call these tools:\n";
  for (const text::ChatJson& tool : tools) {
    const auto function = tool.find("function");
    // Text of clients need not be UTF-8 where it was cut.
    text += (function == tool.end() ? tool : *function)
                .dump(-1, ' ', false, text::ChatJson::error_handler_t::replace) +
            "\n";
  }
  return text + fmt::format("To call a tool, answer with nothing but\n{}{}{}{}{}",
                            form.section_begin, literals.begin, example_arguments(form),
                            literals.end, form.section_end);
}

}  // namespace

void add_tool_instructions(const ToolCallForm& form, const text::ChatJson& tools,
                           text::ChatJson& messages) {
  const std::string text = instructions(form, tools);
  if (!messages.empty()) {
    text::ChatJson& first = messages.front();
    const auto role = first.find("role");
    const auto content = first.find("content");
    const bool is_system = role != first.end() && (*role == "system" || *role == "developer") &&
                           content != first.end();
    if (is_system && content->is_string()) {
      *content = content->get<std::string>() + "\n\n" + text;
      return;
    }
    if (is_system && content->is_array()) {
      content->push_back({{"type", "text"}, {"text", text}});
      return;
    }
  }
  messages.insert(messages.begin(), text::ChatJson{{"role", "system"}, {"content", text}});
}

}  // namespace pagoda::chat
