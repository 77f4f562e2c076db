// Structured output over the API: every field that asks for it, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chat/known_forms.h"
#include "server/api/answer_grammar.h"
#include "server/api/chat_prompt.h"
#include "server/api/tool_grammar.h"
#include "server/reading_memory.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;

StoryFixture& structured_fixture() {
  static StoryFixture fixture;
  return fixture;
}

const Json& small_schema() {
  static const Json kSchema = Json::parse(
      R"({"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":6},
          "age":{"type":"integer","minimum":10,"maximum":99},"kind":{"enum":["cat","dog"]}},
          "required":["name","age","kind"],"additionalProperties":false})");
  return kSchema;
}

Json body_with(const Json& fields) {
  Json body = {{"prompt", "Once upon a time"}, {"max_tokens", 200}, {"temperature", 0}};
  body.update(fields);
  return body;
}

std::string text_with(const Json& fields) {
  const Json reply = structured_fixture().complete(body_with(fields));
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop") << reply.dump();
  return reply["choices"][0]["text"].get<std::string>();
}

void expect_small(const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  ASSERT_TRUE(value.is_object()) << text;
  EXPECT_EQ(value.size(), 3U) << text;
  EXPECT_TRUE(value["kind"] == "cat" || value["kind"] == "dog") << text;
  EXPECT_TRUE(value["age"] >= 10 && value["age"] <= 99) << text;
}

TEST(Structured, EveryFieldForASchemaIsObeyed) {
  const Json schema = small_schema();
  const std::string plain = text_with({{"guided_json", schema}});
  expect_small(plain);
  for (const Json& fields : std::vector<Json>{
           {{"response_format",
             {{"type", "json_schema"},
              {"json_schema", {{"name", "x"}, {"schema", schema}, {"strict", true}}}}}},
           {{"response_format", {{"type", "json_object"}, {"schema", schema}}}},
           {{"structured_outputs", {{"json", schema}}}},
           {{"structured_outputs", {{"json", schema.dump()}, {"regex", nullptr}}}},
           {{"json_schema", schema}}}) {
    EXPECT_EQ(text_with(fields), plain) << fields.dump();
  }
}

TEST(Structured, OtherLanguagesAreObeyed) {
  const std::string regex = "[A-Z][a-z]{3,8}!";
  EXPECT_THAT(text_with({{"structured_outputs", {{"regex", regex}}}}),
              testing::MatchesRegex("[A-Z][a-z]+!"));
  EXPECT_THAT(text_with({{"guided_regex", regex}}), testing::MatchesRegex("[A-Z][a-z]+!"));
  for (const Json& fields :
       std::vector<Json>{{{"structured_outputs", {{"choice", {"yes", "no"}}}}},
                         {{"guided_choice", {"yes", "no"}}},
                         {{"grammar", "root ::= \"yes\" | \"no\""}},
                         {{"guided_grammar", "root ::= \"yes\" | \"no\""}},
                         {{"structured_outputs", {{"grammar", "root ::= \"yes\" | \"no\""}}}}}) {
    const std::string text = text_with(fields);
    EXPECT_TRUE(text == "yes" || text == "no") << text;
  }
}

// vLLM's own class sends every member.
TEST(Structured, MembersThatAreOffAreTaken) {
  const std::string text =
      text_with({{"structured_outputs",
                  {{"choice", {"yes", "no"}}, {"disable_fallback", false}, {"backend", nullptr}}}});
  EXPECT_TRUE(text == "yes" || text == "no") << text;
}

TEST(Structured, AJsonObjectIsOneUpToMaxTokens) {
  const Json reply = structured_fixture().complete(
      body_with({{"response_format", {{"type", "json_object"}}}, {"max_tokens", 12}}));
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  EXPECT_THAT(reply["choices"][0]["text"].get<std::string>(), testing::StartsWith("{"));
}

TEST(Structured, ChatsAndStreamsAndSeveralChoicesObeyToo) {
  Json body = {{"messages", {{{"role", "user"}, {"content", "Tell me"}}}},
               {"max_tokens", 200},
               {"temperature", 1.5},
               {"seed", 5},
               {"n", 3},
               {"json_schema", small_schema()}};
  const Json reply = structured_fixture().ask("/v1/chat/completions", body);
  for (const Json& choice : reply["choices"]) {
    expect_small(choice["message"]["content"].get<std::string>());
  }
  body["n"] = 1;
  std::string text;
  for (const Json& event : structured_fixture().stream("/v1/chat/completions", body)) {
    if (event["choices"].empty()) continue;
    text += event["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(text, reply["choices"][0]["message"]["content"].get<std::string>());
}

TEST(Structured, TheSecondTimeItIsCachedAndTheSame) {
  Json body = body_with({{"json_schema", small_schema()}, {"logprobs", 3}, {"seed", 7}});
  body["prompt"] = repeated("There was a cat. ", 12);
  const Json first = structured_fixture().complete(body);
  const Json second = structured_fixture().complete(body);
  EXPECT_EQ(first["choices"], second["choices"]);
  EXPECT_GT(second["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(), 0);
}

// The end of the grammar is the end of the answer.
TEST(Structured, NothingFollowsAFinishedGrammar) {
  const std::string plain = text_with({{"guided_choice", {"yes", "no"}}});
  for (const Json& fields :
       std::vector<Json>{{{"min_tokens", 50}}, {{"ignore_eos", true}}, {{"max_tokens", 30}}}) {
    Json asked = {{"guided_choice", {"yes", "no"}}};
    asked.update(fields);
    const Json reply = structured_fixture().complete(body_with(asked));
    EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop") << fields.dump();
    EXPECT_EQ(reply["choices"][0]["text"], plain) << fields.dump();
    EXPECT_LT(reply["usage"]["completion_tokens"].get<int>(), 10) << fields.dump();
  }
}

const Json& story_tools() {
  static const Json kTools = Json::parse(R"([
    {"type": "function", "function": {"name": "feed", "parameters": {"type": "object",
      "properties": {"animal": {"enum": ["cat", "dog"]},
                     "times": {"type": "integer", "minimum": 1, "maximum": 3}},
      "required": ["animal", "times"], "additionalProperties": false}}},
    {"type": "function", "function": {"name": "sleep"}}])");
  return kTools;
}

Json chat_with(const Json& fields) {
  Json body = {{"messages", {{{"role", "user"}, {"content", "Feed it."}}}},
               {"max_tokens", 120},
               {"temperature", 1.0},
               {"seed", 3},
               {"tools", story_tools()}};
  body.update(fields);
  return body;
}

void expect_call(const Json& choice, const std::string& name) {
  EXPECT_EQ(choice["finish_reason"], "tool_calls") << choice.dump();
  const Json& message = choice["message"];
  EXPECT_TRUE(message["content"].is_null()) << message.dump();
  ASSERT_GE(message.value("tool_calls", Json::array()).size(), 1U) << message.dump();
  for (const Json& call : message["tool_calls"]) {
    const std::string called = call["function"]["name"].get<std::string>();
    EXPECT_TRUE(name.empty() || called == name) << called;
    const Json value =
        Json::parse(call["function"]["arguments"].get<std::string>(), nullptr, false);
    ASSERT_TRUE(value.is_object()) << message.dump();
    if (called == "sleep") {
      EXPECT_TRUE(value.empty()) << message.dump();
    } else {
      EXPECT_EQ(called, "feed");
      EXPECT_TRUE(value["animal"] == "cat" || value["animal"] == "dog") << message.dump();
      EXPECT_TRUE(value["times"] >= 1 && value["times"] <= 3) << message.dump();
    }
  }
}

// The model knows nothing of tools: the generic form of calls is what it is made to write.
TEST(Structured, ToolsThatMustBeCalledAreCalled) {
  struct Case {
    Json choice;
    std::string name;
  };
  for (const Case& one : std::vector<Case>{
           {"required", ""},
           {{{"type", "function"}, {"function", {{"name", "feed"}}}}, "feed"},
           {{{"type", "function"}, {"function", {{"name", "sleep"}}}}, "sleep"},
           {{{"type", "allowed_tools"},
             {"allowed_tools",
              {{"mode", "required"},
               {"tools", {{{"type", "function"}, {"function", {{"name", "feed"}}}}}}}}},
            "feed"}}) {
    const Json body = chat_with({{"tool_choice", one.choice}, {"parallel_tool_calls", false}});
    const Json reply = structured_fixture().ask("/v1/chat/completions", body);
    expect_call(reply["choices"][0], one.name);
    std::string name;
    std::string arguments;
    for (const Json& event : structured_fixture().stream("/v1/chat/completions", body)) {
      if (event["choices"].empty()) continue;
      for (const Json& call : event["choices"][0]["delta"].value("tool_calls", Json::array())) {
        name += call["function"].value("name", "");
        arguments += call["function"].value("arguments", "");
      }
    }
    const Json& function = reply["choices"][0]["message"]["tool_calls"][0]["function"];
    EXPECT_EQ(name, function["name"].get<std::string>());
    EXPECT_EQ(arguments, function["arguments"].get<std::string>());
  }
}

TEST(Structured, ANamedToolIsCalledInEveryChoice) {
  const Json reply = structured_fixture().ask(
      "/v1/chat/completions",
      chat_with({{"tool_choice", {{"type", "function"}, {"function", {{"name", "feed"}}}}},
                 {"n", 4},
                 {"temperature", 1.5}}));
  for (const Json& choice : reply["choices"]) expect_call(choice, "feed");
}

// A strict schema that no grammar obeys is refused; without strict it is advice.
TEST(Structured, AStrictToolsSchemaIsObeyedOrRefused) {
  Json tools = story_tools();
  tools[0]["function"]["parameters"]["not"] = Json::object();
  Json body = chat_with({{"tools", tools}, {"tool_choice", "required"}, {"max_tokens", 40}});
  EXPECT_EQ(structured_fixture().post("/v1/chat/completions", body).status, 200);
  body["tools"][0]["function"]["strict"] = true;
  for (const char* const choice : {"required", "auto"}) {
    body["tool_choice"] = choice;
    const HttpReply reply = structured_fixture().post("/v1/chat/completions", body);
    EXPECT_EQ(reply.status, 400);
    const Json error = Json::parse(reply.body)["error"];
    EXPECT_EQ(error["param"], "tools[0].function.parameters");
    EXPECT_THAT(error["message"].get<std::string>(),
                HasSubstr("tools[0].function.parameters: /not: this keyword"));
  }
}

// Responses and Anthropic's messages are translated to the same fields.
TEST(Structured, OtherApisAskInTheirOwnWords) {
  const Json schema = small_schema();
  const Json format = {{"type", "json_schema"}, {"name", "x"}, {"schema", schema}};
  const Json response = structured_fixture().ask("/v1/responses", {{"input", "Tell me"},
                                                                   {"max_output_tokens", 200},
                                                                   {"temperature", 0},
                                                                   {"text", {{"format", format}}}});
  expect_small(response["output"][0]["content"][0]["text"].get<std::string>());
  Json message = {{"model", "stories"},
                  {"max_tokens", 200},
                  {"temperature", 0},
                  {"messages", {{{"role", "user"}, {"content", "Tell me"}}}},
                  {"output_config", {{"format", {{"type", "json_schema"}, {"schema", schema}}}}}};
  expect_small(structured_fixture().ask("/v1/messages", message)["content"][0]["text"]);
  message.erase("output_config");
  message["tools"] = {
      {{"name", "feed"}, {"input_schema", story_tools()[0]["function"]["parameters"]}}};
  message["tool_choice"] = {{"type", "any"}, {"disable_parallel_tool_use", true}};
  const Json called = structured_fixture().ask("/v1/messages", message);
  EXPECT_EQ(called["stop_reason"], "tool_use");
  EXPECT_EQ(called["content"][0]["name"], "feed");
  const Json generated = structured_fixture().ask(
      "/api/chat", {{"model", "stories"},
                    {"stream", false},
                    {"format", schema},
                    {"options", {{"temperature", 0}, {"num_predict", 200}}},
                    {"messages", {{{"role", "user"}, {"content", "Tell me"}}}}});
  expect_small(generated["message"]["content"].get<std::string>());
}

// Tokens that end an answer are forbidden before min_tokens: here the grammar has no others.
TEST(Structured, WhatLeavesNoTokenIsTheClientsError) {
  const structured::MaskVocabulary& vocabulary = *structured_fixture().served().mask_vocabulary;
  Json stops = Json::array();
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view bytes = vocabulary.bytes_of(TokenId(id));
    if (!bytes.empty() && std::string_view("yes").starts_with(bytes)) stops.push_back(id);
  }
  ASSERT_FALSE(stops.empty());
  const HttpReply reply = structured_fixture().post(
      "/v1/completions",
      body_with({{"guided_choice", {"yes"}}, {"stop_token_ids", stops}, {"min_tokens", 5}}));
  EXPECT_EQ(reply.status, 400) << reply.body;
  const Json error = Json::parse(reply.body)["error"];
  EXPECT_EQ(error["code"], "no_token_allowed");
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("and the grammar forbid every token"));
}

// One choice of several comes to a dead end: behind "y" every token is forbidden.
TEST(Structured, AChoiceWithoutATokenEndsAlone) {
  const structured::MaskVocabulary& vocabulary = *structured_fixture().served().mask_vocabulary;
  Json stops = Json::array();
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view bytes = vocabulary.bytes_of(TokenId(id));
    const bool goes_on = std::string_view("ab").starts_with(bytes) || bytes.starts_with("ya");
    if (!bytes.empty() && goes_on) stops.push_back(id);
  }
  const Json reply = structured_fixture().complete(body_with({{"guided_choice", {"yab", "qcd"}},
                                                              {"stop_token_ids", stops},
                                                              {"min_tokens", 5},
                                                              {"temperature", 100},
                                                              {"seed", 3},
                                                              {"n", 8}}));
  std::size_t failed = 0;
  for (const Json& choice : reply["choices"]) {
    const bool is_good = choice["finish_reason"] == "stop" && choice["text"] == "qcd";
    const bool is_dead = choice["finish_reason"] == "error" && choice["text"] == "y";
    EXPECT_TRUE(is_good || is_dead) << choice.dump();
    failed += is_dead ? 1 : 0;
  }
  EXPECT_GT(failed, 0U);
  EXPECT_LT(failed, 8U);
}

// Readers skip the white space that a template writes behind reasoning, in its order.
TEST(Structured, WhiteSpaceBehindReasoningIsNoContent) {
  chat::ServedForm form;
  form.found.form.reasoning = chat::find_reasoning_form("qwen3")->reasoning;
  const AnswerTerms answer = {.form = &form, .may_reason = true};
  const Json body = {{"structured_outputs", {{"choice", {"yes", "no"}}}}};
  ReadingMemory memory(nullptr);
  const ReadingTerms terms = {memory, true};
  AnswerGrammar grammar(Fields(body), structured_fixture().served(), terms);
  CompletionRequest request;
  grammar.finish(&answer, request);
  const structured::Grammar& made = request.engine.constraint->grammar();
  for (const char* const gap : {"", "\n", "\n\n"}) {
    EXPECT_TRUE(matches_text(made, "<think>ok</think>" + std::string(gap) + "yes")) << gap;
  }
  for (const char* const gap : {" ", "\n ", "\r\n", "\n\n\n"}) {
    EXPECT_FALSE(matches_text(made, "<think>ok</think>" + std::string(gap) + "yes")) << gap;
  }
}

// A tool whose schema takes all the steps does not keep those behind it from being obeyed.
TEST(Structured, SchemasOfToolsAreCountedApart) {
  Json explodes = {{"type", "object"}, {"properties", {{"a", {{"allOf", Json::array()}}}}}};
  for (int i = 0; i < 12; ++i) {
    Json any = {{"anyOf", Json::array()}};
    for (int k = 0; k < 4; ++k) any["anyOf"].push_back({{"minimum", i * 4 + k}});
    explodes["properties"]["a"]["allOf"].push_back(any);
  }
  const Json good = {{"type", "object"},
                     {"properties", {{"n", {{"type", "integer"}, {"maximum", 5}}}}},
                     {"required", {"n"}}};
  Json tools = Json::array();
  const auto add = [&](const std::string& name, const Json& schema) {
    tools.push_back({{"type", "function"}, {"function", {{"name", name}, {"parameters", schema}}}});
  };
  add("big", explodes);
  add("small", good);
  const auto enforced = [&] {
    const Json fields = {{"tools", tools}, {"tool_choice", "required"}};
    const ToolChoice choice = read_tool_choice(Fields(fields));
    chat::AnswerForm form;
    form.calls = chat::generic_tool_form();
    const MarkedText marked({}, structured_fixture().tokenizer());
    structured::GrammarBuilder builder;
    ToolGrammar grammar(builder, form, marked, choice);
    grammar.calls(true);
    return grammar.enforced();
  };
  EXPECT_EQ(enforced(), std::vector<std::string>{"small"});
  for (int i = 0; i < 5; ++i) add("big" + std::to_string(i), explodes);
  EXPECT_THROW(enforced(), ApiError);
}

// A request is charged for the most that its matchers take, and its reply is handled by its size.
TEST(Structured, MatchersAreCountedApartFromTheText) {
  const auto read = [&](const Json& fields) {
    const Json body = body_with(fields);
    ReadingMemory memory(nullptr);
    return read_text_request(body, structured_fixture().served(), {memory, true});
  };
  const CompletionRequest plain = read(Json::object());
  EXPECT_EQ(plain.matcher_bytes, 0U);
  const CompletionRequest one = read({{"json_schema", small_schema()}});
  const std::uint64_t each = one.engine.constraint->bytes_max();
  EXPECT_EQ(one.memory_bytes - one.matcher_bytes, plain.memory_bytes);
  EXPECT_EQ(one.matcher_bytes, 2 * each + one.engine.constraint->grammar().bytes());
  const CompletionRequest four = read({{"json_schema", small_schema()}, {"n", 4}});
  EXPECT_EQ(four.matcher_bytes - one.matcher_bytes, 3 * each);
}

// The text of a schema is parsed within the memory of requests.
TEST(Structured, ASchemasTextIsParsedWithinTheBudget) {
  std::string text = "{\"enum\":[1";
  for (int i = 0; i < 200'000; ++i) text += ",[]";
  text += "]}";
  const Json body = body_with({{"structured_outputs", {{"json", text}}}});
  ByteBudget budget(std::uint64_t{34} << 20, "max_request_memory_bytes");
  ReadingMemory memory(&budget);
  try {
    read_text_request(body, structured_fixture().served(), {memory, true});
    ADD_FAILURE() << "more than the budget was taken";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.code, "request_too_large") << error.message;
  }
}

struct Refused {
  Json fields;
  std::string param;
  std::string message;
};

TEST(Structured, WhatIsWrongIsRefusedWithItsPlace) {
  const Json wrong = {{"type", "object"}, {"properties", {{"a", {{"not", Json::object()}}}}}};
  for (const Refused& refused : std::vector<Refused>{
           {{{"guided_json", wrong}},
            "guided_json",
            "guided_json: /properties/a/not: this keyword"},
           {{{"response_format", {{"type", "json_schema"}, {"json_schema", {{"schema", wrong}}}}}},
            "response_format.json_schema.schema",
            "/properties/a/not"},
           {{{"response_format", {{"type", "json_schema"}}}}, "response_format.json_schema", ""},
           {{{"response_format", {{"type", "json_schema"}, {"json_schema", Json::object()}}}},
            "response_format.json_schema.schema",
            ""},
           {{{"structured_outputs", {{"json", "{"}}}}, "structured_outputs.json", "byte"},
           {{{"structured_outputs", {{"regex", "("}}}}, "structured_outputs.regex", "at byte 1"},
           {{{"structured_outputs", {{"choice", {"a", 1}}}}}, "structured_outputs.choice[1]", ""},
           {{{"structured_outputs", {{"choice", Json::array()}}}},
            "structured_outputs.choice",
            "is empty"},
           {{{"structured_outputs", {{"grammar", " \n"}}}},
            "structured_outputs.grammar",
            "is empty"},
           {{{"structured_outputs", {{"json", ""}}}}, "structured_outputs.json", "is empty"},
           {{{"structured_outputs", {{"structural_tag", "x"}}}},
            "structured_outputs.structural_tag",
            "is not supported"},
           {{{"structured_outputs", {{"jsonn", "x"}}}},
            "structured_outputs.jsonn",
            "is not supported"},
           {{{"guided_whitespace_pattern", " *"}}, "guided_whitespace_pattern", "is not supported"},
           {{{"guided_decoding_backend", "outlines"}},
            "guided_decoding_backend",
            "is not supported"},
           // It compiles, but no mask can be computed within the limits.
           {{{"guided_regex", "(a?b?){1,3000}"}}, "guided_regex", "too ambiguous"},
           {{{"grammar", "x"}}, "grammar", "expected ::="},
           {{{"grammar", "root ::= root \"a\" | \"b\""}}, "grammar", "refers to itself"},
           {{{"json_schema", 5}}, "json_schema", "a schema is an object or a boolean"},
           {{{"guided_regex", "a"}, {"grammar", "root ::= \"a\""}},
            "grammar",
            "cannot be combined"},
       }) {
    const HttpReply reply = structured_fixture().post("/v1/completions", body_with(refused.fields));
    EXPECT_EQ(reply.status, 400) << refused.fields.dump();
    const Json error = Json::parse(reply.body)["error"];
    EXPECT_EQ(error["param"], refused.param) << reply.body;
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(refused.message));
  }
}

// Compiling is left to a text worker: the thread of the connection serves others.
TEST(Structured, AConnectionDoesNotCompile) {
  HttpRequest request = {.method = "POST",
                         .path = "/v1/completions",
                         .content_type = "application/json",
                         .body = body_with({{"json_schema", small_schema()}}).dump()};
  request.caller = identify({}, structured_fixture().state().keys());
  request.may_take_long = false;
  EXPECT_THROW(route(request, structured_fixture().state()), TakesLong);
}

}  // namespace
}  // namespace pagoda::server
