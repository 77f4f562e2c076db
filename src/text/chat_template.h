// Renders a conversation to the prompt format that its model was trained on.
//
// The template is the model's own (tokenizer.chat_template in its file) or one from a file. A model
// may have another for conversations with tools (tokenizer.chat_template.tool_use). Where a
// template does not accept what clients send, the conversation is rewritten to a form that it
// accepts. Which forms it accepts is probed once, by rendering small conversations when the
// template is loaded.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/metadata.h"
#include "text/jinja/heap.h"
#include "text/jinja/template.h"
#include "text/origin_text.h"
#include "text/tokenizer.h"

namespace pagoda::text {

// Keys keep the order in which they were sent, because templates print them.
using ChatJson = nlohmann::ordered_json;

// The fields of a chat request that templates see, as the API names them.
struct Conversation {
  ChatJson messages = ChatJson::array();
  ChatJson tools;                        // an array, or null
  ChatJson documents;                    // an array, or null
  ChatJson kwargs = ChatJson::object();  // chat_template_kwargs
  bool add_generation_prompt = true;
  // The last message is the beginning of the reply, so that nothing follows its text.
  bool continue_final_message = false;
  std::optional<std::time_t> now;  // the time for strftime_now; the clock when absent
};

// The texts of the special tokens that templates name.
struct SpecialTexts {
  std::optional<std::string> bos;
  std::optional<std::string> eos;
};

// Clients send a tool call's arguments as JSON text.
enum class ToolArguments : std::uint8_t { kAsSent, kObject, kText };

// The forms that a template accepts. Clients may send every form; the others are rewritten.
struct TemplateTraits {
  bool text_content = true;           // a message's content as a string
  bool part_content = false;          // a message's content as a list of typed parts
  bool null_content = true;           // null content beside tool calls
  bool system_role = true;            // false: system messages are put before the next user message
  bool systems = true;                // more than one, anywhere
  bool developer_role = true;         // false: it is a system message
  bool tool_role = true;              // false: results are users' messages
  bool words_beside_thinking = true;  // content beside thinking and tool calls
  bool broken_arguments = true;       // a tool call's arguments as text that is no JSON
  ToolArguments tool_arguments = ToolArguments::kObject;
};

class ChatTemplate {
 public:
  // `name` begins every error message.
  static Result<ChatTemplate> parse(std::string name, std::string_view source,
                                    SpecialTexts specials);
  // Loads the template of a model's file; kNotFound when it has none.
  static Result<ChatTemplate> load(const gguf::Metadata& metadata, const Tokenizer& tokenizer);
  // Loads the template from a text file.
  static Result<ChatTemplate> load_file(const std::string& path, const Tokenizer& tokenizer);

  // Returns kInvalidArgument for an invalid conversation and for one that the template refuses.
  Result<OriginText> render(const Conversation& conversation,
                            const jinja::RenderLimits& limits = {}) const;

  const TemplateTraits& traits() const { return traits_; }
  // The template's text, and after it that of the one for tools.
  std::string_view source() const { return source_; }

 private:
  ChatTemplate(jinja::Template parsed, std::string_view source, SpecialTexts specials)
      : template_(std::move(parsed)), source_(source), specials_(std::move(specials)) {}

  void find_traits();
  // Renders `messages` as they are; returns nothing when the template fails.
  std::optional<std::string> probe(const ChatJson& messages) const;
  // Probes with a tool call between the message `user` and a tool's `result`.
  ToolArguments find_tool_arguments(const ChatJson& user, const ChatJson& result) const;
  bool takes_null_content(const ChatJson& user) const;
  // Find the traits of messages with other roles than the user's; `found` has those of contents.
  void find_role_traits(TemplateTraits& found) const;
  void find_call_traits(TemplateTraits& found) const;

  jinja::Template template_;
  std::string source_;
  SpecialTexts specials_;
  TemplateTraits traits_;
  std::shared_ptr<const ChatTemplate> tool_use_;  // renders conversations with tools; may be null
};

SpecialTexts special_texts(const Tokenizer& tokenizer);

}  // namespace pagoda::text
