// Schemas that are nested 10,000 levels deep, wherever a schema may stand: each is refused with its
// place, and the next request is answered.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t kLevels = 10'000;

// Too deep for a library to write.
std::string deep_schema() {
  const std::string begin = R"({"type":"object","properties":{"a":)";
  return repeated(begin, kLevels) + "true" + repeated("}}", kLevels);
}

StoryFixture& deep_fixture() {
  static StoryFixture fixture;
  return fixture;
}

struct DeepPlace {
  const char* path;
  const char* body;   // with @ where the schema stands
  const char* param;  // the beginning of what the error names
};

constexpr const char* kChatPath = "/v1/chat/completions";

const std::vector<DeepPlace>& deep_places() {
  static const std::vector<DeepPlace> kPlaces = {
      {kCompletionsPath, R"({"prompt":"a","guided_json":@})", "guided_json."},
      {kCompletionsPath, R"({"prompt":"a","json_schema":@})", "json_schema."},
      {kCompletionsPath, R"({"prompt":"a","structured_outputs":{"json":@}})",
       "structured_outputs.json."},
      {kChatPath,
       R"({"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema",
          "json_schema":{"name":"x","schema":@}}})",
       "response_format.json_schema.schema."},
      {kChatPath, R"({"messages":[],"response_format":{"type":"json_object","schema":@}})",
       "response_format.schema."},
      {kChatPath,
       R"({"messages":[],"tools":[{"type":"function","function":{"name":"f"}},
          {"type":"function","function":{"name":"g","strict":true,"parameters":@}}]})",
       "tools[1].function.parameters."},
      {"/v1/responses",
       R"({"input":"a","text":{"format":{"type":"json_schema","name":"x","schema":@}}})",
       "text.format.schema."},
      {"/v1/responses", R"({"input":"a","tools":[{"type":"function","name":"f","parameters":@}]})",
       "tools[0].parameters."},
      {"/v1/messages",
       R"({"max_tokens":1,"output_config":{"format":{"type":"json_schema","schema":@}}})",
       "output_config.format.schema."},
      {"/v1/messages", R"({"max_tokens":1,"tools":[{"name":"f","input_schema":@}]})",
       "tools[0].input_schema."},
      {"/v1/messages/count_tokens", R"({"tools":[{"name":"f","input_schema":@}]})",
       "tools[0].input_schema."},
      {"/api/chat", R"({"model":"stories","format":@})", "format."},
      {"/api/generate", R"({"model":"stories","prompt":"a","format":@})", "format."}};
  return kPlaces;
}

std::string error_message(const HttpReply& reply) {
  const Json error = Json::parse(reply.body)["error"];
  return (error.is_string() ? error : error["message"]).get<std::string>();
}

void expect_undisturbed() {
  const Json body = {{"prompt", "Once upon a time"}, {"max_tokens", 3}, {"temperature", 0}};
  const Json reply = deep_fixture().complete(body);
  EXPECT_EQ(reply["usage"]["completion_tokens"], 3);
}

TEST(DeepSchemas, AreRefusedWithTheirPlace) {
  const std::string schema = deep_schema();
  for (const DeepPlace& place : deep_places()) {
    std::string body = place.body;
    body.replace(body.find('@'), 1, schema);
    const HttpReply reply = deep_fixture().post_text(place.path, body);
    EXPECT_EQ(reply.status, 400) << place.body;
    const std::string expected = place.param + std::string("properties.a");
    EXPECT_THAT(error_message(reply), StartsWith(expected)) << place.body;
    EXPECT_THAT(error_message(reply), HasSubstr("is nested deeper than 64 levels"));
    const Json error = Json::parse(reply.body)["error"];
    if (error.is_object()) {
      EXPECT_THAT(error["param"].get<std::string>(), StartsWith(expected)) << place.body;
    }
  }
  expect_undisturbed();
}

TEST(DeepSchemas, AreRefusedAsTextsToo) {
  const Json schema = deep_schema();
  for (const auto& [fields, param] : std::vector<std::pair<Json, std::string>>{
           {{{"guided_json", schema}}, "guided_json"},
           {{{"structured_outputs", {{"json", schema}}}}, "structured_outputs.json"}}) {
    Json body = {{"prompt", "a"}};
    body.update(fields);
    const HttpReply reply = deep_fixture().post(kCompletionsPath, body);
    EXPECT_EQ(reply.status, 400);
    EXPECT_THAT(error_message(reply), StartsWith(param + ": properties.a.properties.a"));
    EXPECT_EQ(Json::parse(reply.body)["error"]["param"], param);
  }
  expect_undisturbed();
}

// References make a flat document a deep one: each schema is that of a member of the one before it,
// or is the one before it.
TEST(DeepSchemas, AreRefusedWhereReferencesAreDeep) {
  for (const bool is_member : {true, false}) {
    std::string definitions;
    for (std::size_t i = 0; i < kLevels; ++i) {
      const std::string next = fmt::format(R"({{"$ref":"#/$defs/d{}"}})", i + 1);
      const std::string member =
          R"({"type":"object","required":["a"],"properties":{"a":)" + next + "}}";
      definitions += fmt::format(R"("d{}":{},)", i, is_member ? member : next);
    }
    definitions += fmt::format(R"("d{}":{{"type":"null"}})", kLevels);
    const HttpReply reply = deep_fixture().post_text(
        kCompletionsPath,
        R"({"prompt":"a","json_schema":{"$ref":"#/$defs/d0","$defs":{)" + definitions + "}}}");
    EXPECT_EQ(reply.status, 400) << is_member;
    EXPECT_EQ(Json::parse(reply.body)["error"]["param"], "json_schema");
    EXPECT_THAT(error_message(reply), StartsWith("json_schema: ")) << is_member;
  }
  expect_undisturbed();
}

}  // namespace
}  // namespace pagoda::server
