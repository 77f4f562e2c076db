// Requests in the shape of Codex (Responses) and Claude Code (Messages), with invented content: the
// fields that they send are taken, and what is wrong is refused with its path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "server/api/anthropic/messages_request.h"
#include "server/api/chat_prompt.h"
#include "server/api/completion_fields.h"
#include "server/api/ollama/ollama_request.h"
#include "server/api/responses/responses_request.h"
#include "server/story_fixture.h"
#include "test_data.h"

namespace pagoda::server {
namespace {

// tests/data/agents/NAME.json, a turn after two calls.
Json agent_body(const char* name) {
  std::ifstream stream(test_data() + "/agents/" + name + ".json");
  Json body = Json::parse(stream);
  body["model"] = "stories";
  return body;
}

// The wire test agents_test.py asks for the answers.
TEST(AgentRequests, FieldsAreTaken) {
  const Json codex = responses::chat_of_responses(agent_body("codex")).body;
  EXPECT_EQ(codex["messages"].size(), 6U);
  EXPECT_EQ(codex["messages"][3]["tool_calls"].size(), 2U);
  EXPECT_EQ(codex["tools"].size(), 1U);
  const Json claude = anthropic::chat_of_messages(agent_body("claude_code")).body;
  EXPECT_EQ(claude["messages"].size(), 6U);
  EXPECT_EQ(claude["messages"][4]["content"], "Error: no such file");
  EXPECT_EQ(claude["tools"].size(), 2U);
}

struct BadRequest {
  const char* path;
  const char* change;  // merged into the agent's body
  const char* param;
};

constexpr BadRequest kBadAgentRequests[] = {
    {"/v1/responses", R"({"input": [{"type": "computer_call", "call_id": "a"}]})", "input[0].type"},
    {"/v1/responses", R"({"input": [{"type": 7}]})", "input[0].type"},
    {"/v1/responses", R"({"input": [{"type": "item_reference", "id": "a"}]})", "input[0].type"},
    {"/v1/messages", R"({"messages": [{"role": "user", "content": []}]})", "messages[0].content"},
    {"/v1/messages", R"({"output_format": {"type": "json_schema", "schema": 7}})",
     "output_format.schema"},
    {"/v1/responses", R"({"input": [{"role": "user", "content": "a"}, {"role": "tool",
        "content": "b"}]})",
     "input[1].role"},
    {"/v1/responses", R"({"input": [{"role": "user", "content": [{"type": "input_image",
        "image_url": "x"}]}]})",
     "input[0].content[0].type"},
    {"/v1/responses", R"({"input": [{"role": "user", "content": "a"},
        {"type": "function_call_output", "call_id": "a", "output": "b"}]})",
     "input[1].call_id"},
    {"/v1/responses", R"({"input": [{"type": "function_call", "call_id": "a", "name": "f",
        "arguments": "{}"}, {"type": "function_call_output", "call_id": "b", "output": "c"}]})",
     "input[1].call_id"},
    {"/v1/responses", R"({"input": [{"type": "function_call", "call_id": "a", "name": "f",
        "arguments": {}}]})",
     "input[0].arguments"},
    {"/v1/responses", R"({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]})",
     "input[0].call_id"},
    {"/v1/responses", R"({"input": [{"type": "reasoning", "content": [{"type": "x"}]}]})",
     "input[0].content[0].text"},
    {"/v1/responses", R"({"input": [null]})", "input[0]"},
    {"/v1/responses", R"({"tools": [{"name": "f"}]})", "tools[0].type"},
    {"/v1/responses", R"({"tools": [{"type": "web_search"}, {"type": "function"}]})",
     "tools[1].name"},
    {"/v1/messages", R"({"messages": [{"role": "developer", "content": "a"}]})",
     "messages[0].role"},
    {"/v1/messages", R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
        {"type": "tool_result", "tool_use_id": "x", "content": "b"}]}]})",
     "messages[0].content[1].tool_use_id"},
    {"/v1/messages", R"({"messages": [{"role": "assistant", "content": [{"type": "tool_result",
        "tool_use_id": "x", "content": "b"}]}]})",
     "messages[0].content[0].type"},
    {"/v1/messages", R"({"messages": [{"role": "user", "content": [{"type": "document"}]}]})",
     "messages[0].content[0].type"},
    {"/v1/messages", R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use",
        "name": "f", "input": {}}]}]})",
     "messages[0].content[0].id"},
    {"/v1/messages", R"({"tools": [{"type": "web_search_20250305", "name": "w"},
        {"name": "f", "input_schema": 7}]})",
     "tools[1].input_schema"},
};

TEST(AgentRequests, WhatIsWrongIsRefusedWithItsPath) {
  StoryFixture fixture;
  for (const BadRequest& bad : kBadAgentRequests) {
    const bool is_messages = std::string_view(bad.path) == "/v1/messages";
    Json body = agent_body(is_messages ? "claude_code" : "codex");
    body.update(Json::parse(bad.change));
    const HttpReply reply = fixture.post(bad.path, body);
    EXPECT_EQ(reply.status, 400) << bad.change;
    const Json error = Json::parse(reply.body)["error"];
    EXPECT_EQ(error["param"], bad.param) << reply.body;
    EXPECT_TRUE(error["message"].get<std::string>().starts_with(std::string(bad.param) + ":"))
        << reply.body;
  }
}

// A question in each API, which is short enough for the context.
const std::pair<const char*, Json> kQuestions[] = {
    {"/v1/responses", {{"input", "Once"}, {"max_output_tokens", 6}}},
    {"/v1/messages", {{"messages", {{{"role", "user"}, {"content", "Once"}}}}, {"max_tokens", 6}}},
    {"/api/chat",
     {{"messages", {{{"role", "user"}, {"content", "Once"}}}},
      {"stream", false},
      {"options", {{"num_predict", 6}}}}},
    {"/api/generate", {{"prompt", "Once"}, {"stream", false}, {"options", {{"num_predict", 6}}}}}};

TEST(AgentRequests, FieldsOfChatsConstrainEveryApi) {
  StoryFixture fixture;
  for (const auto& [path, question] : kQuestions) {
    for (const char* const field :
         {R"({"structured_outputs": {"choice": ["zebra", "zebu"]}})",
          R"({"guided_choice": ["zebra", "zebu"]})",
          R"({"grammar": "root ::= \"zeb\" [ru] \"a\"?"})",
          R"({"response_format": {"type": "json_schema", "json_schema": {"name": "a",
             "schema": {"const": "zebra"}}}})"}) {
      Json body = question;
      body.update(Json::parse(field));
      const HttpReply reply = fixture.post(path, body);
      EXPECT_EQ(reply.status, 200) << path << field << reply.body;
      EXPECT_NE(reply.body.find("zeb"), std::string::npos) << path << field << reply.body;
    }
  }
}

TEST(AgentRequests, FieldsThatNoReplyCanHoldAreRefusedInEveryApi) {
  StoryFixture fixture;
  for (const auto& [path, question] : kQuestions) {
    for (const char* const name : {"n", "best_of", "logprobs", "prompt_logprobs", "echo",
                                   "max_completion_tokens", "functions", "bad_words", "audio"}) {
      Json body = question;
      body[name] = 2;
      const HttpReply reply = fixture.post(path, body);
      EXPECT_EQ(reply.status, 400) << path << " " << name;
      EXPECT_NE(reply.body.find(std::string(name) + ":"), std::string::npos) << reply.body;
    }
    Json idle = question;
    idle.update({{"n", 1}, {"logprobs", false}, {"echo", false}, {"functions", Json::array()}});
    EXPECT_EQ(fixture.post(path, idle).status, 200) << path;
  }
}

// One thing under two names: neither may win in silence.
TEST(AgentRequests, AFieldOfChatsBesideTheApisOwnIsRefused) {
  StoryFixture fixture;
  struct Twice {
    const char* path;
    const char* fields;
    const char* param;
  };
  for (const Twice& twice : std::vector<Twice>{
           {"/v1/messages",
            R"({"output_config": {"format": {"type": "json_schema", "schema": {}}},
                "response_format": {"type": "json_object"}})",
            "output_config.format"},
           {"/v1/messages",
            R"({"output_config": {"format": {"type": "json_schema", "schema": {}}},
                "output_format": {"type": "json_schema", "schema": {}}})",
            "output_config.format"},
           {"/v1/messages", R"({"stop_sequences": ["a"], "stop": "b"})", "stop_sequences"},
           {"/v1/messages", R"({"output_config": {"effort": "low"}, "reasoning_effort": "high"})",
            "output_config.effort"},
           {"/v1/messages",
            R"({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
                "parallel_tool_calls": true})",
            "tool_choice.disable_parallel_tool_use"},
           {"/v1/responses",
            R"({"text": {"format": {"type": "text"}}, "response_format": {"type": "json_object"}})",
            "text.format"},
           {"/v1/responses", R"({"reasoning": {"effort": "low"}, "reasoning_effort": "high"})",
            "reasoning.effort"},
           {"/api/chat", R"({"format": "json", "response_format": {"type": "json_object"}})",
            "format"},
           {"/api/chat", R"({"options": {"stop": ["a"]}, "stop": ["b"]})", "options.stop"},
           {"/api/chat", R"({"options": {"temperature": 0}, "temperature": 1})",
            "options.temperature"},
           {"/api/generate", R"({"think": "low", "reasoning_effort": "high"})", "think"},
           {"/api/generate", R"({"truncate": true, "truncation": "disabled"})", "truncate"}}) {
    Json body = std::find_if(std::begin(kQuestions), std::end(kQuestions), [&](const auto& one) {
                  return std::string_view(one.first) == twice.path;
                })->second;
    body.merge_patch(Json::parse(twice.fields));
    const HttpReply reply = fixture.post(twice.path, body);
    EXPECT_EQ(reply.status, 400) << twice.path << twice.fields << reply.body;
    EXPECT_NE(reply.body.find(std::string(twice.param) + ": and "), std::string::npos)
        << twice.fields << reply.body;
  }
}

// What the engine refuses is named as the client wrote it, and so is what the client wrote under
// the chats' name.
TEST(AgentRequests, ErrorsNameTheFieldThatWasSent) {
  StoryFixture fixture;
  struct Refused {
    const char* path;
    const char* fields;
    const char* param;
  };
  for (const Refused& refused : std::vector<Refused>{
           {"/v1/responses", R"({"top_p": 7})", "top_p"},
           {"/v1/responses", R"({"response_format": {"type": "xml"}})", "response_format.type"},
           {"/v1/responses", R"({"text": {"format": {"type": "xml"}}})", "text.format.type"},
           {"/v1/messages", R"({"stop": 7})", "stop"},
           {"/v1/messages", R"({"response_format": {"type": "xml"}})", "response_format.type"},
           {"/v1/messages", R"({"output_format": {"type": "xml"}})", "output_format.type"},
           {"/api/chat", R"({"options": {"top_p": 7}})", "options.top_p"},
           {"/api/chat", R"({"top_p": 7})", "top_p"},
           {"/api/chat", R"({"temperature": -1})", "temperature"},
           {"/api/chat", R"({"reasoning_effort": 7})", "reasoning_effort"},
           {"/api/generate", R"({"options": {"top_p": 7}})", "options.top_p"},
           {"/api/generate", R"({"response_format": {"type": "xml"}})", "response_format.type"}}) {
    Json body = std::find_if(std::begin(kQuestions), std::end(kQuestions), [&](const auto& one) {
                  return std::string_view(one.first) == refused.path;
                })->second;
    body.merge_patch(Json::parse(refused.fields));
    const HttpReply reply = fixture.post(refused.path, body);
    EXPECT_EQ(reply.status, 400) << refused.path << refused.fields << reply.body;
    const Json error = Json::parse(reply.body)["error"];
    const std::string message =
        error.is_string() ? error.get<std::string>() : error["message"].get<std::string>();
    EXPECT_TRUE(message.starts_with(std::string(refused.param) + ":") ||
                message.starts_with(std::string(refused.param) + " "))
        << refused.path << refused.fields << message;
  }
}

TEST(AgentRequests, APathOfAnotherServerIsAnsweredWithOurs) {
  StoryFixture fixture;
  const auto told = [&](const std::string& path) {
    const HttpReply reply = fixture.send({.method = "POST", .path = path});
    EXPECT_EQ(reply.status, 404) << path;
    return reply.body;
  };
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"/completion", "; it is /v1/completions here"},
      {"/generate", "; it is /v1/completions here"},
      {"/props", "; it is /server_info here"},
      {"/api/embed", "; it is /v1/embeddings here"},
      {"/api/pull", "; models are not downloaded by requests: pagoda pull NAME does"},
      {"/chat/completions", "; it is /v1/chat/completions here"},
      {"/v1/chat/completions/", "; it is /v1/chat/completions here"},
      {"/v1/v1/responses", "; it is /v1/responses here"},
      {"/v1/metrics", "; it is /metrics here"}};
  for (const auto& [path, meant] : rows) EXPECT_THAT(told(path), testing::HasSubstr(meant)) << path;
  for (const std::string path : {"/nothing", "/v2/completions", "/v1"}) {
    EXPECT_THAT(told(path), testing::HasSubstr(path + ": there is no such path\"")) << path;
  }
  EXPECT_THAT(told("/" + std::string(5000, 'a')), testing::Not(testing::HasSubstr("; it is")));
}

TEST(AgentRequests, FieldsThatNothingAnswersAreNamedOrRefused) {
  const Json question = {{"messages", {{{"role", "user"}, {"content", "a"}}}}, {"max_tokens", 1}};
  Json claude = question;
  claude.update({{"mcp_servers", {{{"name", "m"}}}},
                 {"container", "c"},
                 {"context_management", {{"edits", Json::array()}}},
                 {"session", "s"}});
  EXPECT_EQ(
      ignored_fields(anthropic::chat_of_messages(claude).body),
      (std::vector<std::string>{"mcp_servers", "container", "context_management", "session"}));
  EXPECT_EQ(ignored_fields(
                responses::chat_of_responses(
                    {{"input", "a"}, {"context_management", Json::array()}, {"max_tool_calls", 3}})
                    .body),
            (std::vector<std::string>{"context_management", "max_tool_calls"}));
  Json ollama = {{"messages", question["messages"]}, {"xyz", 1}, {"keep_alive", "5m"}};
  EXPECT_EQ(ignored_fields(ollama::chat_of_chat(ollama).body), std::vector<std::string>{"xyz"});
  EXPECT_EQ(ignored_fields(ollama::chat_of_generate({{"prompt", "a"}, {"xyz", 1}}).body),
            std::vector<std::string>{"xyz"});
  StoryFixture fixture;
  const HttpReply reply =
      fixture.post("/v1/responses",
                   {{"input", "a"},
                    {"include", {"reasoning.encrypted_content", "message.output_text.logprobs"}}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(Json::parse(reply.body)["error"]["param"], "include[1]") << reply.body;
  ReadingMemory memory(nullptr);
  EXPECT_EQ(read_embedding_request({{"input", "a"}, {"pooling", "mean"}, {"xyz", 1}},
                                   fixture.served(), {.memory = memory})
                .ignored,
            std::vector<std::string>{"xyz"});
}

TEST(AgentRequests, DocumentsThatATemplateDoesNotShowAreNamedAsIgnored) {
  StoryFixture fixture;
  const auto ignored = [&](const Json& documents, const std::string& source) {
    const text::SpecialTexts specials = text::special_texts(fixture.tokenizer());
    const ServedModel model = {
        .names = {"stories"},
        .tokenizer = fixture.tokenizer(),
        .chat_template = text::ChatTemplate::parse("test", source, specials).value(),
        .engine = fixture.engine(),
        .step_notifier = fixture.served().step_notifier,
        .fingerprint = "test"};
    ReadingMemory memory(nullptr);
    const Json body = {{"messages", {{{"role", "user"}, {"content", "a"}}}},
                       {"documents", documents}};
    return read_chat_request(body, model, {.memory = memory}).ignored;
  };
  const Json one = Json::array({{{"text", "a document"}}});
  EXPECT_EQ(ignored(one, kStoryTemplate), std::vector<std::string>{"documents"});
  EXPECT_TRUE(ignored(Json::array(), kStoryTemplate).empty());
  const std::string shows =
      std::string(kStoryTemplate) + "{% for d in documents %}{{ d.text }}{% endfor %}";
  EXPECT_TRUE(ignored(one, shows).empty());
}

TEST(AgentRequests, FieldsThatNobodyKnowsAreNamedInEveryApi) {
  for (const Json& chat :
       {responses::chat_of_responses({{"input", "a"}, {"xyz", 1}}).body,
        anthropic::chat_of_messages(
            {{"messages", {{{"role", "user"}, {"content", "a"}}}}, {"max_tokens", 1}, {"xyz", 1}})
            .body}) {
    EXPECT_EQ(ignored_fields(chat), std::vector<std::string>{"xyz"}) << chat.dump();
  }
  for (const auto& [agent, body] :
       {std::pair{"codex", responses::chat_of_responses(agent_body("codex")).body},
        std::pair{"claude_code", anthropic::chat_of_messages(agent_body("claude_code")).body}}) {
    EXPECT_EQ(ignored_fields(body), std::vector<std::string>{}) << agent;
  }
}

TEST(AgentRequests, APromptThatIsTooLongIsToldInTheWordsThatClientsLookFor) {
  StoryFixture fixture;
  std::string text;
  for (int i = 0; i < 4000; ++i) text += "once upon a time ";
  const HttpReply reply = fixture.post(
      "/v1/messages", {{"messages", {{{"role", "user"}, {"content", text}}}}, {"max_tokens", 6}});
  EXPECT_EQ(reply.status, 400);
  const std::string message = Json::parse(reply.body)["error"]["message"];
  EXPECT_TRUE(message.starts_with("prompt is too long: ")) << message;
}

}  // namespace
}  // namespace pagoda::server
