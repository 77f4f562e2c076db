// Rendering and ids against Hugging Face transformers (tests/data/make_chat_fixtures.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "default_model.h"
#include "test_data.h"
#include "text/chat_template.h"
#include "text/prompt_tokens.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

std::string chat_path(const std::string& name) { return test_data() + "/chat/" + name; }

// The fixtures' dates are in UTC.
void use_utc() {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
}

struct Prompts {
  ChatJson fixture = ChatJson::parse(read_file(chat_path("prompts.json")));
  std::map<std::string, ChatTemplate> templates;

  const ChatTemplate* find(const std::string& name) {
    const auto known = templates.find(name);
    if (known != templates.end()) return &known->second;
    auto made =
        ChatTemplate::parse(name, read_file(chat_path("templates/" + name + ".jinja")),
                            {fixture["bos"].get<std::string>(), fixture["eos"].get<std::string>()});
    if (!made.ok()) {
      ADD_FAILURE() << made.error().message;
      return nullptr;
    }
    return &templates.emplace(name, std::move(made).value()).first->second;
  }

  Conversation conversation(const ChatJson& entry) const {
    Conversation made;
    made.messages = entry["messages"];
    made.tools = entry.value("tools", ChatJson());
    made.documents = entry.value("documents", ChatJson());
    made.kwargs = entry["kwargs"];
    made.add_generation_prompt = entry.value("add_generation_prompt", true);
    made.continue_final_message = entry.value("continue_final_message", false);
    made.now = fixture["now"].get<std::time_t>();
    return made;
  }
};

// transformers loses or refuses what a template has no place for, or prints Python's word for it;
// here it is rewritten (message_roles_test.cc, every_template_test.cc).
bool is_message_rewritten(const ChatJson& message, const TemplateTraits& traits) {
  const std::string role = message["role"];
  const Source source = role == "system" ? Source::kSystem
                        : role == "tool" ? Source::kTool
                        : role == "user" ? Source::kUser
                                         : Source::kAssistant;
  const ChatJson content = message.value("content", ChatJson());
  const std::size_t calls = message.value("tool_calls", ChatJson::array()).size();
  return (role == "tool" && !traits.tool_role) || (role == "developer" && !traits.developer_role) ||
         (content.is_array() && !traits.whole_parts[static_cast<std::size_t>(source)]) ||
         (content.is_null() && !traits.null_content) || (calls > 1 && !traits.several_calls);
}

bool is_rewritten(const ChatJson& messages, const TemplateTraits& traits) {
  bool has_system = false;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (is_message_rewritten(messages[i], traits)) return true;
    const bool is_system = messages[i]["role"] == "system";
    if (is_system && i > 0 && !traits.systems) return true;
    has_system = has_system || is_system;
  }
  return has_system && !traits.system_above_results && messages.back()["role"] != "user";
}

TEST(ChatPrompts, AreThoseOfTransformers) {
  use_utc();
  Prompts prompts;
  ASSERT_GT(prompts.fixture["cases"].size(), 150U);
  std::size_t rewritten = 0;
  for (const ChatJson& entry : prompts.fixture["cases"]) {
    const std::string name = entry["template"];
    const ChatTemplate* const chat = prompts.find(name);
    ASSERT_NE(chat, nullptr);
    if (is_rewritten(entry["messages"], chat->traits())) {
      ++rewritten;
      continue;
    }
    const auto prompt = chat->render(prompts.conversation(entry));
    if (entry.contains("refused")) {
      ASSERT_FALSE(prompt.ok()) << name;
      EXPECT_NE(prompt.error().message.find(entry["refused"].get<std::string>()), std::string::npos)
          << prompt.error().message;
      continue;
    }
    ASSERT_TRUE(prompt.ok()) << prompt.error().message << "\n" << entry["messages"].dump();
    EXPECT_EQ(prompt.value().bytes(), entry["prompt"].get<std::string>()) << name;
  }
  EXPECT_LT(rewritten, prompts.fixture["cases"].size() / 10);
}

TEST(ChatPrompts, HaveTheIdsOfTransformers) {
  REQUIRE_DEFAULT_MODEL();
  use_utc();
  const auto tokenizer = load_tokenizer(default_model_path());
  ASSERT_NE(tokenizer, nullptr);
  Prompts prompts;
  std::size_t compared = 0;
  for (const ChatJson& entry : prompts.fixture["cases"]) {
    if (!entry.contains("ids")) continue;
    const ChatTemplate* const chat = prompts.find(entry["template"]);
    ASSERT_NE(chat, nullptr);
    if (is_rewritten(entry["messages"], chat->traits())) continue;
    const auto prompt = chat->render(prompts.conversation(entry));
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    EXPECT_EQ(numbers(tokenise_prompt(prompt.value(), *tokenizer).ids),
              entry["ids"].get<std::vector<std::uint32_t>>())
        << entry["template"];
    ++compared;
  }
  EXPECT_GT(compared, 60U);
}

TEST(ChatPrompts, TheDefaultModelsTemplateIsInItsFile) {
  REQUIRE_DEFAULT_MODEL();
  auto file = gguf::File::open(default_model_path());
  ASSERT_TRUE(file.ok());
  const auto tokenizer = load_tokenizer(default_model_path());
  ASSERT_NE(tokenizer, nullptr);
  const auto chat = ChatTemplate::load(file.value().metadata(), *tokenizer);
  ASSERT_TRUE(chat.ok()) << chat.error().message;
  Conversation conversation;
  conversation.messages = {{{"role", "system"}, {"content", "Be brief."}},
                           {{"role", "user"}, {"content", "Hi"}}};
  const auto prompt = chat.value().render(conversation);
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_EQ(prompt.value().bytes(),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(Jinja, SnippetsRenderAsInTransformers) {
  const auto fixture = nlohmann::json::parse(read_file(chat_path("expressions.json")));
  ASSERT_GT(fixture.size(), 300U);
  for (const auto& entry : fixture) {
    const std::string source = entry["template"];
    const auto parsed = jinja::Template::parse("snippet", source);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message << "\n" << source;
    const auto text = parsed.value().render([](jinja::Heap&, jinja::Scope&) {}, 0);
    ASSERT_TRUE(text.ok()) << text.error().message << "\n" << source;
    EXPECT_EQ(text.value().bytes(), entry["text"].get<std::string>()) << source;
  }
}

}  // namespace
}  // namespace pagoda::text
