#include "text/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "text/jinja/import.h"
#include "text/jinja/show.h"
#include "text/jinja/text_builder.h"
#include "text/message_roles.h"
#include "text/template_tools.h"

namespace pagoda::text {
namespace {

using jinja::Dict;
using jinja::fail;
using jinja::Heap;
using jinja::TextBuilder;
using jinja::Value;

struct Role {
  std::string_view name;
  Source source;
};

// Templates build special tokens of these words ("<|" + role + "|>"), so that they are template
// text; any other role is the client's.
constexpr std::array<Role, 8> kRoles = {{{"system", Source::kSystem},
                                         {"developer", Source::kSystem},
                                         {"user", Source::kUser},
                                         {"assistant", Source::kAssistant},
                                         {"model", Source::kAssistant},
                                         {"tool", Source::kTool},
                                         {"function", Source::kTool},
                                         {"ipython", Source::kTool}}};

const Role* find_role(std::string_view name) {
  const auto* const found = std::find_if(kRoles.begin(), kRoles.end(),
                                         [&](const Role& role) { return role.name == name; });
  return found == kRoles.end() ? nullptr : found;
}

class MessageImporter {
 public:
  MessageImporter(const TemplateTraits& traits, Heap& heap) : traits_(traits), heap_(heap) {}

  Value import(const ChatJson& message, std::size_t index) {
    if (!message.is_object()) fail(fmt::format("messages[{}] is not an object", index));
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string()) {
      fail(fmt::format("messages[{}] has no role", index));
    }
    const Role* const known = find_role(role->get_ref<const std::string&>());
    origin_ = {known == nullptr ? Source::kUser : known->source, static_cast<std::uint32_t>(index)};
    index_ = index;
    const Value imported = jinja::import_json(message, origin_, heap_);
    Dict& fields = imported.as_dict();
    drop_unset(fields);
    if (known != nullptr) set(fields, "role", heap_.text(std::string(role_name(*known))));
    const Value* const content = fields.find("content");
    if (content != nullptr || origin_.source == Source::kAssistant) {
      const bool has_calls = fields.find("tool_calls") != nullptr;
      set(fields, "content", fit_content(content ? *content : Value::none(), has_calls));
    }
    fit_tool_calls(fields);
    name_reasoning(fields);
    return imported;
  }

 private:
  std::string_view role_name(const Role& role) const {
    return role.name == "developer" && !traits_.developer_role ? "system" : role.name;
  }

  void set(Dict& fields, std::string_view key, const Value& value) {
    set_field(fields, key, value, heap_);
  }

  // Members that are null, and empty lists of calls, are as if they were not sent: what clients get
  // of their packages has them, and templates look whether they are there.
  void drop_unset(Dict& fields) {
    std::vector<Value> unset;
    for (const auto& [key, value] : fields.entries()) {
      const bool is_empty = value.is_list() && value.as_list().items.empty();
      const bool no_calls = is_empty && key.bytes() == "tool_calls";
      if ((value.is_none() && key.bytes() != "content") || no_calls) unset.push_back(key);
    }
    for (const Value& key : unset) fields.erase(key, heap_);
  }

  Value fit_content(Value content, bool has_calls) {
    const bool is_nothing =
        content.is_none() || (content.is_list() && content.as_list().items.empty());
    if (is_nothing) {
      content = has_calls && traits_.null_content ? Value::none() : heap_.text(std::string());
    }
    const bool takes_parts =
        traits_.part_content && traits_.whole_parts[static_cast<std::size_t>(origin_.source)];
    if (content.is_list() && !takes_parts) content = joined_parts(content, index_, heap_);
    if (!content.is_text() || traits_.text_content || !traits_.part_content) return content;
    const Value part = heap_.dict();
    set(part.as_dict(), "type", heap_.text("text"));
    set(part.as_dict(), "text", content);
    return heap_.list({part});
  }

  // Clients send arguments as JSON text, and most templates want the object.
  void fit_tool_calls(const Dict& fields) {
    const Value* const calls = fields.find("tool_calls");
    if (calls == nullptr || !calls->is_list()) return;
    for (const Value& call : calls->as_list().items) {
      if (!call.is_dict()) fail(fmt::format("messages[{}]: a tool call is no object", index_));
      const Value* const function = call.as_dict().find("function");
      Dict& target =
          function != nullptr && function->is_dict() ? function->as_dict() : call.as_dict();
      const Value* const arguments = target.find("arguments");
      if (arguments == nullptr) continue;
      const Value fitted = fit_arguments(*arguments);
      set(target, "arguments", fitted);
    }
  }

  // No text stands for no arguments. Text that is no object reaches a template that takes objects
  // alone within one.
  Value fit_arguments(const Value& arguments) {
    const ToolArguments wanted = traits_.tool_arguments;
    if (wanted == ToolArguments::kText && arguments.is_dict()) {
      return jinja::as_json(arguments, {}, heap_);
    }
    if (!arguments.is_text() || wanted == ToolArguments::kAsSent) return arguments;
    const bool is_empty = arguments.bytes().find_first_not_of(" \t\r\n") == std::string_view::npos;
    if (wanted == ToolArguments::kText) return is_empty ? heap_.text("{}") : arguments;
    if (is_empty) return heap_.dict();
    const auto parsed = jinja::parse_json(arguments.bytes(), heap_);
    if (parsed.ok() && parsed.value().is_object()) {
      return jinja::import_json(parsed.value(), origin_, heap_);
    }
    if (traits_.broken_arguments) return arguments;
    const Value wrapped = heap_.dict();
    set(wrapped.as_dict(), "arguments", arguments);
    return wrapped;
  }

  // Templates read a message's reasoning under one of three names, and clients send it under one.
  void name_reasoning(Dict& fields) {
    for (const std::string_view name : {"reasoning_content", "thinking", "reasoning"}) {
      const Value* const found = fields.find(name);
      if (found == nullptr) continue;
      const Value reasoning = *found;
      for (const std::string_view other : {"thinking", "reasoning_content", "reasoning"}) {
        if (fields.find(other) == nullptr) set(fields, other, reasoning);
      }
      return;
    }
  }

  const TemplateTraits& traits_;
  Heap& heap_;
  Origin origin_;
  std::size_t index_ = 0;
};

Value marked(const Value& text, Heap& heap) {
  TextBuilder longer(heap);
  longer.append(text.as_text());
  longer.append(kContinuationTag, kContinuationMark);
  return std::move(longer).value();
}

void mark_end(const Value& message, Heap& heap) {
  const Value* const content = message.as_dict().find("content");
  if (content != nullptr && content->is_text()) {
    set_field(message.as_dict(), "content", marked(*content, heap), heap);
    return;
  }
  if (content != nullptr && content->is_list()) {
    const std::vector<Value>& parts = content->as_list().items;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const Value* const text = part->is_dict() ? part->as_dict().find("text") : nullptr;
      if (text == nullptr || !text->is_text()) continue;
      set_field(part->as_dict(), "text", marked(*text, heap), heap);
      return;
    }
  }
  fail("continue_final_message: the last message has no text to go on from");
}

Value import_list(const ChatJson& json, std::string_view name, Heap& heap) {
  if (!json.is_array()) fail(fmt::format("{} is not an array", name));
  return jinja::import_json(json, {Source::kTool, Origin::kNoMessage}, heap);
}

}  // namespace

Value import_messages(const Conversation& conversation, const TemplateTraits& traits, Heap& heap) {
  const ChatJson& messages = conversation.messages;
  if (!messages.is_array() || messages.empty()) fail("messages is not an array of messages");
  MessageImporter importer(traits, heap);
  std::vector<Value> imported;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    imported.push_back(importer.import(messages[i], i));
  }
  imported = fit_roles(std::move(imported), traits, conversation.continue_final_message, heap);
  if (conversation.continue_final_message) mark_end(imported.back(), heap);
  return heap.list(std::move(imported));
}

void bind_extras(const Conversation& conversation, const TemplateTraits& traits, Heap& heap,
                 jinja::Scope& scope) {
  const auto bind_list = [&](std::string_view name, const ChatJson& json) {
    scope.set(name, json.is_null() ? Value::none() : import_list(json, name, heap));
  };
  if (!conversation.kwargs.is_object() && !conversation.kwargs.is_null()) {
    fail("chat_template_kwargs is not an object");
  }
  for (const auto& [name, value] : conversation.kwargs.items()) {
    for (const std::string_view taken :
         {"messages", "tools", "documents", "add_generation_prompt"}) {
      if (name == taken) fail(fmt::format("chat_template_kwargs cannot set '{}'", name));
    }
    const Value imported = jinja::import_json(value, {Source::kUser, Origin::kNoMessage}, heap);
    heap.reserve(jinja::Scope::kNameBytes);
    scope.set(name, imported);
  }
  const std::optional<ChatJson> tools = fitted_tools(conversation.tools, traits);
  bind_list("tools", tools ? *tools : conversation.tools);
  bind_list("documents", conversation.documents);
}

}  // namespace pagoda::text
