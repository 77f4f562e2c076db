// Messages of roles that a template refuses or leaves out: their text reaches the prompt.
#include "text/message_roles.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "test_data.h"
#include "text/chat_template.h"

namespace pagoda::text {
namespace {

const std::string kFolder = test_data() + "/chat/templates";

ChatTemplate load(const std::string& name) {
  std::ifstream stream(kFolder + "/" + name + ".jinja");
  std::stringstream source;
  source << stream.rdbuf();
  auto parsed = ChatTemplate::parse(name, source.str(), {"<s>", "</s>"});
  EXPECT_TRUE(parsed.ok()) << name;
  return std::move(parsed).value();
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    names.push_back(entry.path().stem().string());
  }
  return names;
}

Conversation talk(const char* messages) {
  Conversation conversation;
  conversation.messages = ChatJson::parse(messages);
  // Some templates want a list of tools.
  conversation.tools = ChatJson::parse(
      R"([{"type": "function", "function": {"name": "f", "description": "d",
           "parameters": {"type": "object", "properties": {"a": {"type": "integer",
           "description": "d"}}, "required": ["a"]}}}])");
  conversation.now = 0;
  return conversation;
}

std::string rendered(const ChatTemplate& chat, const Conversation& conversation) {
  const auto prompt = chat.render(conversation);
  return prompt.ok() ? std::string(prompt.value().bytes()) : "error: " + prompt.error().message;
}

// Conversations of agents, and the words of which every template must show each.
struct Talk {
  const char* messages;
  std::vector<std::string> words;
};

const std::vector<Talk>& talks() {
  static const std::vector<Talk> kTalks = {
      {R"([{"role": "developer", "content": "wDev"}, {"role": "user", "content": "wUser"}])",
       {"wDev", "wUser"}},
      {R"([{"role": "system", "content": "wOne"}, {"role": "system", "content": "wTwo"},
           {"role": "user", "content": "wUser"}])",
       {"wOne", "wTwo", "wUser"}},
      {R"([{"role": "system", "content": "wOne"}, {"role": "developer", "content": "wTwo"},
           {"role": "user", "content": "wUser"}])",
       {"wOne", "wTwo", "wUser"}},
      {R"([{"role": "system", "content": "wOne"}, {"role": "user", "content": "wUser"},
           {"role": "assistant", "content": "wBack"}, {"role": "system", "content": "wTwo"},
           {"role": "user", "content": "wAgain"}])",
       {"wOne", "wTwo", "wUser", "wBack", "wAgain"}},
      {R"([{"role": "user", "content": "wUser"}, {"role": "assistant", "content": "wBack"},
           {"role": "user", "content": "wAgain"}, {"role": "system", "content": "wTwo"}])",
       {"wUser", "wAgain", "wTwo"}}};
  return kTalks;
}

TEST(MessageRoles, NoSystemMessageIsLost) {
  for (const std::string& name : template_names()) {
    // Its own roles alone.
    if (name == "documents") continue;
    const ChatTemplate chat = load(name);
    for (const Talk& talk_of : talks()) {
      const std::string prompt = rendered(chat, talk(talk_of.messages));
      for (const std::string& word : talk_of.words) {
        EXPECT_NE(prompt.find(word), std::string::npos)
            << name << " without " << word << ": " << prompt;
      }
    }
  }
}

TEST(MessageRoles, ResultsOfToolsAreUsersWordsWhereThereIsNoRoleForThem) {
  Conversation results = talk(
      R"([{"role": "user", "content": "ask"}, {"role": "assistant", "content": "call"},
          {"role": "tool", "tool_call_id": "call00001", "content": "21"},
          {"role": "tool", "tool_call_id": "call00002",
           "content": [{"type": "text", "text": "22"}]},
          {"role": "user", "content": "and"}])");
  const ChatTemplate gemma = load("gemma2");
  EXPECT_FALSE(gemma.traits().tool_role);
  EXPECT_EQ(rendered(gemma, results),
            "<s><start_of_turn>user\nask<end_of_turn>\n<start_of_turn>model\ncall<end_of_turn>\n"
            "<start_of_turn>user\nResult of the tool:\n21\n\nResult of the tool:\n22\n\nand"
            "<end_of_turn>\n<start_of_turn>model\n");
  results.messages.erase(4);
  EXPECT_NE(rendered(load("phi3.5"), results).find("21\n\nResult of the tool:\n22"),
            std::string::npos);
  EXPECT_TRUE(load("qwen3").traits().tool_role);
  EXPECT_TRUE(load("llama3.1").traits().tool_role);
}

// gpt-oss refuses the three of them together.
TEST(MessageRoles, WordsBesideThinkingAndCallsAreKept) {
  for (const std::string& name : template_names()) {
    if (name == "documents") continue;
    const ChatTemplate chat = load(name);
    const std::string prompt = rendered(chat, talk(R"([
      {"role": "user", "content": "wUser"},
      {"role": "assistant", "content": "wWords", "reasoning_content": "wThought", "tool_calls": [
        {"id": "call00001", "type": "function",
         "function": {"name": "f", "arguments": "{\"a\": 1}"}}]},
      {"role": "tool", "tool_call_id": "call00001", "name": "f", "content": "wResult"}])"));
    EXPECT_FALSE(prompt.starts_with("error: ")) << name << ": " << prompt;
    EXPECT_NE(prompt.find("wResult"), std::string::npos) << name << ": " << prompt;
  }
  const ChatTemplate gpt = load("gpt_oss");
  EXPECT_FALSE(gpt.traits().words_beside_thinking);
  EXPECT_TRUE(load("qwen3").traits().words_beside_thinking);
}

// No template refuses arguments that are nothing or no JSON.
TEST(MessageRoles, ArgumentsOfAnyTextRender) {
  const char* const kCall = R"([
      {"role": "user", "content": "wUser"},
      {"role": "assistant", "content": "", "tool_calls": [
        {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": ""}}]},
      {"role": "tool", "tool_call_id": "call00001", "name": "f", "content": "wResult"}])";
  for (const std::string& name : template_names()) {
    if (name == "documents") continue;
    const ChatTemplate chat = load(name);
    for (const char* const arguments : {"", " ", "{\"wCity\": ", "wCity", "[1]", "null"}) {
      Conversation conversation = talk(kCall);
      conversation.messages[1]["tool_calls"][0]["function"]["arguments"] = arguments;
      const std::string prompt = rendered(chat, conversation);
      EXPECT_FALSE(prompt.starts_with("error: ")) << name << ", " << arguments << ": " << prompt;
    }
    Conversation none = talk(kCall);
    none.messages[1]["tool_calls"][0]["function"]["arguments"] = ChatJson::object();
    const std::string expected = rendered(chat, none);
    EXPECT_EQ(rendered(chat, talk(kCall)), expected) << name;
  }
}

}  // namespace
}  // namespace pagoda::text
