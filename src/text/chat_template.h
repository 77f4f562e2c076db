// Renders a conversation to the prompt format that its model was trained on.
//
// The template is the model's own (tokenizer.chat_template in its file) or one from a file. A model
// may have another for conversations with tools (tokenizer.chat_template.tool_use). Where a
// template does not accept what clients send, the conversation is rewritten to a form that it
// accepts. Which forms it accepts is probed once, by rendering small conversations when the
// template is loaded.
#pragma once

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
#include "text/template_traits.h"
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

  jinja::Template template_;
  std::string source_;
  SpecialTexts specials_;
  TemplateTraits traits_;
  std::shared_ptr<const ChatTemplate> tool_use_;  // renders conversations with tools; may be null
};

SpecialTexts special_texts(const Tokenizer& tokenizer);

}  // namespace pagoda::text
