// How much a model thinks is said in several fields of three APIs: all reach the chat template, and
// which of them wins is the same everywhere.
#include <gtest/gtest.h>

#include "server/api/anthropic/messages_request.h"
#include "server/api/responses/responses_request.h"
#include "server/api/translated_chat.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

// Nobody's role is shown: the same is rendered from every API.
constexpr const char* kReasoningTemplate =
    "{{ messages[-1].content }}|{{ reasoning_effort }}|{{ enable_thinking }}|{{ thinking }}|"
    "{{ mood }}";

const ServedModel& reasoning_model() {
  static StoryFixture fixture;
  static const ServedModel kModel = {
      .names = {"stories"},
      .tokenizer = fixture.tokenizer(),
      .chat_template = text::ChatTemplate::parse("reasoning", kReasoningTemplate,
                                                 text::special_texts(fixture.tokenizer()))
                           .value(),
      .engine = fixture.engine(),
      .step_notifier = fixture.served().step_notifier,
      .fingerprint = "test"};
  return kModel;
}

Json with(Json body, const char* fields) {
  body.update(Json::parse(fields));
  return body;
}

std::string shown(const CompletionRequest& request) {
  return std::string(request.prompts.front().rendered.bytes());
}

std::string chat_prompt(const char* fields) {
  ReadingMemory memory(nullptr);
  const Json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"max_tokens", 1}};
  return shown(read_chat_request(with(body, fields), reasoning_model(), {memory}));
}

std::string response_prompt(const char* fields) {
  ReadingMemory memory(nullptr);
  TranslatedChat chat = responses::chat_of_responses(with({{"input", "Hi"}}, fields));
  return shown(read_translated(std::move(chat), reasoning_model(), {memory}));
}

std::string message_prompt(const char* fields) {
  ReadingMemory memory(nullptr);
  const Json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"max_tokens", 1}};
  TranslatedChat chat = anthropic::chat_of_messages(with(body, fields));
  return shown(read_translated(std::move(chat), reasoning_model(), {memory}));
}

struct Said {
  const char* fields;
  const char* prompt;
};

TEST(ReasoningFields, ReachTheTemplateFromChats) {
  for (const Said& one : std::vector<Said>{
           {R"({})", "Hi||||"},
           {R"({"reasoning_effort": "high"})", "Hi|high|||"},
           {R"({"reasoning": {"effort": "low"}})", "Hi|low|||"},
           {R"({"reasoning_effort": "none"})", "Hi|none|False|False|"},
           {R"({"reasoning": {"enabled": false}})", "Hi||False|False|"},
           {R"({"enable_thinking": false})", "Hi||False|False|"},
           {R"({"thinking": true})", "Hi||True|True|"},
           {R"({"thinking": {"type": "enabled", "budget_tokens": 1024}})", "Hi||True|True|"},
           {R"({"thinking": {"type": "disabled"}})", "Hi||False|False|"},
           {R"({"chat_template_kwargs": {"mood": "glad", "thinking": false}})",
            "Hi|||False|glad"}}) {
    EXPECT_EQ(chat_prompt(one.fields), one.prompt) << one.fields;
  }
}

TEST(ReasoningFields, ReachTheTemplateFromResponses) {
  for (const Said& one :
       std::vector<Said>{{R"({})", "Hi||||"},
                         {R"({"reasoning": {"effort": "high", "summary": "auto"}})", "Hi|high|||"},
                         {R"({"reasoning": {"effort": "none"}})", "Hi|none|False|False|"},
                         {R"({"enable_thinking": false})", "Hi||False|False|"},
                         {R"({"thinking": {"type": "enabled"}})", "Hi||True|True|"},
                         {R"({"chat_template_kwargs": {"mood": "glad"}})", "Hi||||glad"}}) {
    EXPECT_EQ(response_prompt(one.fields), one.prompt) << one.fields;
  }
}

TEST(ReasoningFields, ReachTheTemplateFromMessages) {
  for (const Said& one : std::vector<Said>{
           {R"({})", "Hi||||"},
           {R"({"output_config": {"effort": "high"}})", "Hi|high|||"},
           {R"({"thinking": {"type": "enabled", "budget_tokens": 1024}})", "Hi||True|True|"},
           {R"({"thinking": {"type": "adaptive"}})", "Hi||True|True|"},
           {R"({"thinking": {"type": "disabled"}})", "Hi||False|False|"},
           {R"({"enable_thinking": true})", "Hi||True|True|"},
           {R"({"chat_template_kwargs": {"mood": "glad"}})", "Hi||||glad"}}) {
    EXPECT_EQ(message_prompt(one.fields), one.prompt) << one.fields;
  }
}

// chat_template_kwargs, reasoning.enabled, an effort of none, enable_thinking, thinking: the first
// that is said wins, whatever the order in the body.
TEST(ReasoningFields, TheMoreParticularOnesWin) {
  const std::string kwargs =
      R"("chat_template_kwargs": {"reasoning_effort": "low", "enable_thinking": false})";
  const std::string thinking = R"("thinking": {"type": "enabled"}, "enable_thinking": true, )";
  const auto body = [&](const char* effort) {
    return "{" + thinking + effort + ", " + kwargs + "}";
  };
  const char* const expected = "Hi|low|False|True|";
  EXPECT_EQ(chat_prompt(body(R"("reasoning_effort": "high")").c_str()), expected);
  EXPECT_EQ(response_prompt(body(R"("reasoning": {"effort": "high"})").c_str()), expected);
  EXPECT_EQ(message_prompt(body(R"("output_config": {"effort": "high"})").c_str()), expected);
  EXPECT_EQ(chat_prompt(R"({"thinking": true, "enable_thinking": false})"), "Hi||False|False|");
  EXPECT_EQ(chat_prompt(R"({"enable_thinking": true, "reasoning_effort": "none"})"),
            "Hi|none|False|False|");
  EXPECT_EQ(chat_prompt(R"({"reasoning_effort": "none", "reasoning": {"enabled": true}})"),
            "Hi|none|True|True|");
  EXPECT_EQ(chat_prompt(R"({"reasoning": {"effort": "low"}, "reasoning_effort": "high"})"),
            "Hi|high|||");
}

}  // namespace
}  // namespace pagoda::server
