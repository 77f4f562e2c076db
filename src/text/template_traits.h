// The forms of messages and tools that a chat template accepts. Clients may send every form; the
// others are rewritten (chat_messages.h, message_roles.h, template_tools.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/origin.h"

namespace pagoda::text {

struct Conversation;  // chat_template.h

// Clients send a tool call's arguments as JSON text.
enum class ToolArguments : std::uint8_t { kAsSent, kObject, kText };

// The options from which templates read how much a model is to think.
inline constexpr std::array<const char*, 2> kEffortOptions = {"reasoning_effort",
                                                              "thinking_effort"};

struct TemplateTraits {
  bool text_content = true;   // a message's content as a string
  bool part_content = false;  // a message's content as a list of typed parts
  // Whether lists of parts are shown whole, by the messages' Source.
  std::array<bool, kSourceCount> whole_parts = {true, true, true, true, true};
  bool null_content = true;           // null content beside tool calls
  bool empty_answers = true;          // an assistant's message without words and calls
  bool system_role = true;            // false: system messages are put before the next user message
  bool systems = true;                // more than one, anywhere
  bool developer_role = true;         // false: it is a system message
  bool tool_role = true;              // false: results are users' messages
  bool repeated_roles = true;         // a user's or an assistant's messages in a row
  bool user_behind_result = true;     // a user's message right behind a tool's result
  bool words_beside_thinking = true;  // content beside thinking and tool calls
  bool several_calls = true;          // more than one in a message
  bool broken_arguments = true;       // a tool call's arguments as text that is no JSON
  ToolArguments tool_arguments = ToolArguments::kObject;
  bool null_tools = true;            // a chat without tools; false: it has an empty list
  bool tools_without_texts = true;   // tools without a description
  bool tools_without_schema = true;  // tools without parameters
  bool schemas_without_properties = true;
  bool system_above_results = true;  // false: none is shown where a result stands last
  // An option of kEffortOptions and a known effort that the template refuses there.
  std::vector<std::pair<std::string, std::string>> refused_efforts = {};

  bool takes_effort(std::string_view option, std::string_view effort) const;
};

// Renders a small conversation as it is; returns nothing where the template fails.
using TraitProbe = std::function<std::optional<std::string>(const Conversation&)>;

// Finds the traits of a template with this source by rendering small conversations.
TemplateTraits find_traits(const TraitProbe& probe, std::string_view source);

}  // namespace pagoda::text
