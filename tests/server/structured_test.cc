// Structured output over the API: every field that asks for it, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/chat_prompt.h"
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
