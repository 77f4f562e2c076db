#include "chat/template_probe.h"

#include <algorithm>

#include "chat/literal.h"

namespace pagoda::chat {
namespace {

using text::ChatJson;

// Comparing takes time by the square of the texts; those of current templates have a few hundred
// bytes.
constexpr std::size_t kTailBytesMax = 8192;

constexpr text::jinja::RenderLimits kDeriveLimits = {.steps = 100'000, .bytes = 16U << 20};

ChatJson probe_tools() {
  ChatJson tools = ChatJson::array();
  for (const char* const name : kProbeNames) {
    ChatJson properties = ChatJson::object();
    for (const char* const key : kProbeKeys) {
      properties[key] = {{"type", "string"}, {"description", "A value."}};
    }
    tools.push_back({{"type", "function"},
                     {"function",
                      {{"name", name},
                       {"description", "A tool."},
                       {"parameters",
                        {{"type", "object"},
                         {"properties", properties},
                         {"required", ChatJson::array({kProbeKeys[0]})}}}}}});
  }
  return tools;
}

ChatJson user_message(const char* words = kProbeUser) {
  return {{"role", "user"}, {"content", words}};
}

ChatJson assistant_message(const ProbeMessage& probe) {
  ChatJson message = {{"role", "assistant"}, {"content", probe.content ? kProbeContent : ""}};
  if (probe.reasoning) message["reasoning_content"] = kProbeReasoning;
  for (std::size_t i = 0; i < probe.calls.size(); ++i) {
    const bool other_id = i == 0 && !probe.id.empty();
    message["tool_calls"].push_back(
        {{"id", other_id ? std::string(probe.id) : std::string(kProbeIds[i % 2])},
         {"type", "function"},
         {"function",
          {{"name", kProbeNames[probe.calls[i].name]}, {"arguments", probe.calls[i].arguments}}}});
  }
  return message;
}

}  // namespace

ChatJson probe_arguments(int count) {
  ChatJson arguments = ChatJson::object();
  for (int i = 0; i < count; ++i) arguments[kProbeKeys[i]] = kProbeValues[i];
  return arguments;
}

TemplateProbe::TemplateProbe(const text::ChatTemplate& chat) : chat_(chat) {
  text::Conversation conversation;
  conversation.messages = ChatJson::array({user_message()});
  with_tools_ = render(conversation).has_value();
  conversation.add_generation_prompt = false;
  const std::string alone = behind_user(conversation).value_or("");
  if (alone.find(kProbeNames[0]) != std::string::npos) tools_text_ = alone;
}

std::optional<std::string> TemplateProbe::render(const text::Conversation& conversation) const {
  text::Conversation asked = conversation;
  if (with_tools_ && asked.tools.is_null()) asked.tools = probe_tools();
  asked.now = 0;
  const auto prompt = chat_.render(asked, kDeriveLimits);
  if (!prompt.ok()) return std::nullopt;
  return std::string(prompt.value().bytes());
}

std::optional<std::string> TemplateProbe::behind_user(const text::Conversation& asked) const {
  auto prompt = render(asked);
  if (!prompt) return std::nullopt;
  const std::size_t at = prompt->rfind(kProbeUser);
  if (at == std::string::npos) return std::nullopt;
  prompt->erase(0, at + std::string_view(kProbeUser).size());
  if (prompt->starts_with(tools_text_)) prompt->erase(0, tools_text_.size());
  if (prompt->size() > kTailBytesMax) return std::nullopt;
  return prompt;
}

std::optional<std::string> TemplateProbe::tail(const ProbeMessage& message) const {
  // Several calls would be shown as messages of their own.
  if (message.calls.size() > 1 && !chat_.traits().several_calls) return std::nullopt;
  text::Conversation conversation;
  conversation.messages = ChatJson::array({user_message(), assistant_message(message)});
  conversation.add_generation_prompt = false;
  return behind_user(conversation);
}

std::string TemplateProbe::late_end(std::string_view written) const {
  text::Conversation conversation;
  conversation.messages = ChatJson::array(
      {user_message(), assistant_message({.content = true}), user_message(kProbeNext)});
  conversation.add_generation_prompt = false;
  const std::string turns = behind_user(conversation).value_or("");
  const std::size_t at = turns.find(kProbeContent);
  if (at == std::string::npos) return {};
  const std::string_view behind =
      std::string_view(turns).substr(at + std::string_view(kProbeContent).size());
  for (std::size_t bytes = std::min(written.size(), behind.size()); bytes > 0; --bytes) {
    const std::string_view end = behind.substr(0, bytes);
    if (written.ends_with(end) && !core(end).empty()) return std::string(end);
  }
  return {};
}

std::optional<std::string> TemplateProbe::generation_tail(bool thinking) const {
  text::Conversation conversation;
  conversation.messages = ChatJson::array({user_message()});
  if (!thinking) conversation.kwargs = {{"enable_thinking", false}, {"thinking", false}};
  return behind_user(conversation);
}

bool TemplateProbe::shows_tools() const {
  if (!with_tools_) return false;
  text::Conversation conversation;
  conversation.messages = ChatJson::array({user_message()});
  const auto prompt = render(conversation);
  return prompt && prompt->find(kProbeNames[0]) != std::string::npos;
}

}  // namespace pagoda::chat
