#include "text/template_traits.h"

#include <algorithm>

#include "text/chat_template.h"

namespace pagoda::text {
namespace {

// No template contains these words.
constexpr const char* kNeedle = "nEEdLe";
constexpr const char* kSystemNeedle = "sYsTEm-nEEdLe";
constexpr const char* kOtherNeedle = "oThEr-nEEdLe";
// Mistral's templates want ids of nine letters and digits.
constexpr const char* kCallId = "call00001";
constexpr const char* kOtherCallId = "call00002";

using Shown = std::optional<std::string>;

ChatJson message(const char* role, ChatJson content) {
  return {{"role", role}, {"content", std::move(content)}};
}

ChatJson text_part(const char* text) { return {{"type", "text"}, {"text", text}}; }

ChatJson two_parts() {
  return ChatJson::array({text_part(kSystemNeedle), text_part(kOtherNeedle)});
}

// Returns a tool call as clients send it.
ChatJson tool_call(const ChatJson& arguments, const char* id = kCallId,
                   const char* name = "probe") {
  return {
      {"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
}

ChatJson tool_call_message(const ChatJson& content, const ChatJson& arguments) {
  ChatJson call = message("assistant", content);
  call["tool_calls"] = ChatJson::array({tool_call(arguments)});
  return call;
}

ChatJson tool_result(ChatJson content, const char* id = kCallId) {
  ChatJson result = message("tool", std::move(content));
  result["tool_call_id"] = id;
  result["name"] = "probe";
  return result;
}

ChatJson tool_with(ChatJson members) {
  ChatJson function = {{"name", kNeedle}};
  function.update(members);
  return {{"type", "function"}, {"function", std::move(function)}};
}

bool has(const Shown& prompt, std::string_view text) {
  return prompt && prompt->find(text) != std::string::npos;
}

bool has_both(const Shown& prompt) {
  return has(prompt, kSystemNeedle) && has(prompt, kOtherNeedle);
}

// A template that prints a list of parts itself shows the names of its fields.
bool prints_parts(const Shown& prompt) { return has(prompt, "'type'") || has(prompt, "\"type\""); }

class TraitFinder {
 public:
  TraitFinder(const TraitProbe& probe, std::string_view source) : probe_(probe), source_(source) {}

  TemplateTraits find() {
    const Shown text = shown({message("user", kNeedle)});
    const Shown parts = shown({message("user", ChatJson::array({text_part(kNeedle)}))});
    found_.part_content = has(parts, kNeedle) && !prints_parts(parts);
    found_.text_content = has(text, kNeedle) || !found_.part_content;
    user_ = message("user", content(kNeedle));
    answer_ = message("assistant", content("yes"));
    find_roles();
    find_arguments();
    find_calls();
    find_order();
    find_parts();
    find_tools();
    find_efforts();
    return std::move(found_);
  }

 private:
  ChatJson content(const char* words) const {
    return found_.text_content ? ChatJson(words) : ChatJson::array({text_part(words)});
  }

  Shown shown(std::initializer_list<ChatJson> messages) const {
    Conversation conversation;
    for (const ChatJson& one : messages) conversation.messages.push_back(one);
    if (auto prompt = probe_(conversation)) return prompt;
    // Some templates for tool use need a list of tools.
    conversation.tools = ChatJson::array();
    return probe_(conversation);
  }

  ChatJson call_with(const ChatJson& words) const { return tool_call_message(words, arguments_); }

  void find_roles() {
    const ChatJson system = message("system", content(kSystemNeedle));
    const ChatJson other = message("system", content(kOtherNeedle));
    found_.system_role = has(shown({system, user_}), kSystemNeedle);
    found_.developer_role =
        has(shown({message("developer", content(kSystemNeedle)), user_}), kSystemNeedle);
    found_.systems = has_both(shown({system, other, user_})) &&
                     has_both(shown({system, user_, answer_, other, user_}));
  }

  void find_arguments() {
    found_.tool_arguments = argument_style();
    if (found_.tool_arguments == ToolArguments::kText) arguments_ = "{}";
    found_.null_content = takes_null_content();
  }

  ToolArguments argument_style() const {
    const ChatJson result = tool_result(content("1"));
    const std::string key(kSystemNeedle);
    // Templates differ in the content that they expect beside a tool call.
    for (const ChatJson& words : {ChatJson(nullptr), ChatJson("")}) {
      const auto call = [&](const ChatJson& arguments) {
        return shown({user_, tool_call_message(words, arguments), result});
      };
      const Shown as_object = call({{key, 1}});
      if (has(as_object, key) && !has(as_object, "'" + key + "'")) return ToolArguments::kObject;
      if (has(call("{\"" + key + "\": 1}"), "{\"" + key)) return ToolArguments::kText;
    }
    return ToolArguments::kObject;
  }

  bool takes_null_content() const {
    const ChatJson result = tool_result(user_["content"]);
    const ChatJson answer = message("assistant", user_["content"]);
    // The template wants the arguments either as an object or as text. Some look at the content of
    // earlier turns alone.
    for (const ChatJson& arguments : {ChatJson::object(), ChatJson("{}")}) {
      const ChatJson call = tool_call_message(nullptr, arguments);
      if (!shown({user_, call})) continue;
      const ChatJson empty = tool_call_message("", arguments);
      const bool takes_turns = shown({user_, empty, result, answer, user_}).has_value();
      if (!takes_turns) return true;
      const Shown prompt = shown({user_, call, result, answer, user_});
      // Some print Python's word for nothing.
      return prompt && !has(prompt, "None");
    }
    return false;
  }

  void find_calls() {
    const ChatJson call = call_with(content(""));
    const ChatJson result = tool_result(content(kSystemNeedle));
    found_.tool_role =
        has(shown({user_, call, result}), kSystemNeedle) ||
        has(shown({user_, call_with(nullptr), result}), kSystemNeedle) ||
        has(shown({user_, message("assistant", content("a")), result}), kSystemNeedle);

    ChatJson thinking = call_with(content(kSystemNeedle));
    thinking["reasoning_content"] = kOtherNeedle;
    ChatJson silent = call;
    silent["reasoning_content"] = kOtherNeedle;
    const ChatJson words = message("assistant", content(kSystemNeedle));
    found_.words_beside_thinking =
        shown({user_, thinking}).has_value() || !shown({user_, words, silent}).has_value();
    found_.broken_arguments =
        has(shown({user_, tool_call_message(content(""), kSystemNeedle)}), kSystemNeedle);

    ChatJson several = call;
    several["tool_calls"].push_back(tool_call(arguments_, kOtherCallId, kOtherNeedle));
    const bool shows_one = has(shown({user_, call}), "probe");
    found_.several_calls =
        !shows_one ||
        has(shown({user_, several, result, tool_result(content("1"), kOtherCallId)}), kOtherNeedle);
  }

  void find_order() {
    const auto takes = [&](std::initializer_list<ChatJson> alike,
                           std::initializer_list<ChatJson> needed) {
      return has_both(shown(alike)) || !shown(needed).has_value();
    };
    const ChatJson one = message("user", content(kSystemNeedle));
    const ChatJson two = message("user", content(kOtherNeedle));
    const ChatJson said = message("assistant", content(kSystemNeedle));
    const ChatJson more = message("assistant", content(kOtherNeedle));
    found_.repeated_roles =
        takes({one, two}, {one}) && takes({user_, said, more, user_}, {user_, said, user_});
    const ChatJson call = call_with(found_.null_content ? ChatJson(nullptr) : content(""));
    const ChatJson result = tool_result(content(kSystemNeedle));
    if (found_.system_role && found_.tool_role) {
      const ChatJson system = message("system", content(kSystemNeedle));
      const Shown prompt = shown({system, user_, call, tool_result(content(kOtherNeedle))});
      found_.system_above_results = has(prompt, kSystemNeedle) || !has(prompt, kOtherNeedle);
    }
    found_.user_behind_result = !found_.tool_role || takes({user_, call, result, two, more, user_},
                                                           {user_, call, result, more, user_});
    found_.empty_answers = shown({user_, message("assistant", content("")), user_}).has_value();
  }

  // Whether both of two parts are shown, by the author's role.
  void find_parts() {
    if (!found_.part_content) return;
    const auto shows = [&](std::initializer_list<ChatJson> messages) {
      const Shown prompt = shown(messages);
      return has_both(prompt) && !prints_parts(prompt);
    };
    const auto set = [&](Source source, bool whole) {
      found_.whole_parts[static_cast<std::size_t>(source)] = whole;
    };
    set(Source::kUser, shows({message("user", two_parts())}));
    set(Source::kSystem, shows({message("system", two_parts()), user_}));
    set(Source::kAssistant, shows({user_, message("assistant", two_parts()), user_}));
    const ChatJson call = call_with(found_.null_content ? ChatJson(nullptr) : content(""));
    set(Source::kTool, shows({user_, call, tool_result(two_parts())}));
  }

  void find_tools() {
    const ChatJson alone = ChatJson::array({user_});
    found_.null_tools =
        with_tools(alone, nullptr).has_value() || !with_tools(alone, ChatJson::array()).has_value();
    find_tool_members(alone);
    // Some templates show tools below a system message alone (FunctionGemma's by vLLM).
    find_tool_members(ChatJson::array({message("system", content(kSystemNeedle)), user_}));
  }

  Shown with_tools(const ChatJson& messages, const ChatJson& tools) const {
    Conversation conversation;
    conversation.messages = messages;
    conversation.tools = tools;
    return probe_(conversation);
  }

  // Finds what a tool beside these messages must have.
  void find_tool_members(const ChatJson& messages) {
    const ChatJson schema = {{"type", "object"}, {"properties", ChatJson::object()}};
    const auto shown_with = [&](const ChatJson& members) {
      return with_tools(messages, ChatJson::array({tool_with(members)}));
    };
    const Shown expected = shown_with({{"description", "d"}, {"parameters", schema}});
    if (!expected) return;
    const auto takes = [&](const ChatJson& members) {
      const Shown prompt = shown_with(members);
      return prompt && has(prompt, kNeedle) == has(expected, kNeedle);
    };
    found_.tools_without_texts &= takes({{"parameters", schema}});
    found_.tools_without_schema &= takes({{"description", "d"}});
    found_.schemas_without_properties &=
        takes({{"description", "d"}, {"parameters", ChatJson::object()}}) &&
        takes({{"description", "d"}, {"parameters", {{"type", "object"}}}});
  }

  // A template that knows nothing of efforts takes all.
  void find_efforts() {
    for (const char* const option : kEffortOptions) {
      if (source_.find(option) == std::string_view::npos) continue;
      for (const char* const effort :
           {"none", "minimal", "low", "medium", "high", "xhigh", "max"}) {
        const bool refused =
            refuses({{option, effort}}, ChatJson::object()) ||
            refuses({{option, effort}, {"enable_thinking", true}, {"thinking", true}},
                    {{"enable_thinking", true}, {"thinking", true}});
        if (refused) found_.refused_efforts.emplace_back(option, effort);
      }
    }
  }

  bool refuses(const ChatJson& options, const ChatJson& others) const {
    const auto with = [&](const ChatJson& kwargs) {
      Conversation conversation;
      conversation.messages = ChatJson::array({user_});
      conversation.kwargs = kwargs;
      return probe_(conversation).has_value();
    };
    return with(others) && !with(options);
  }

  const TraitProbe& probe_;
  std::string_view source_;
  TemplateTraits found_;
  ChatJson user_;
  ChatJson answer_;
  ChatJson arguments_ = ChatJson::object();  // as the template wants them
};

}  // namespace

bool TemplateTraits::takes_effort(std::string_view option, std::string_view effort) const {
  return std::none_of(refused_efforts.begin(), refused_efforts.end(), [&](const auto& refused) {
    return refused.first == option && refused.second == effort;
  });
}

TemplateTraits find_traits(const TraitProbe& probe, std::string_view source) {
  return TraitFinder(probe, source).find();
}

}  // namespace pagoda::text
