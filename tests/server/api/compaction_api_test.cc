// POST /v1/chat/compact and /v1/responses/compact: shorter conversations for clients to send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "chat/compaction.h"
#include "counted_allocations.h"
#include "server/api/long_chats.h"
#include "server/api/responses/responses_request.h"
#include "server/story_server.h"
#include "server/tenants_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;

constexpr const char* kCompactPath = "/v1/chat/compact";
constexpr const char* kCompactResponsePath = "/v1/responses/compact";

StoryFixture& compaction_fixture() {
  static StoryFixture fixture;
  return fixture;
}

Json compact_body(int turns, Json more = Json::object()) {
  Json body = {{"messages", long_chat(turns)}, {"max_tokens", 12}, {"min_tokens", 4}};
  body.update(more);
  return body;
}

TEST(CompactionApi, ReturnsTheMessagesThatAClientSendsNext) {
  StoryFixture& fixture = compaction_fixture();
  const Json body = compact_body(4, {{"keep_turns", 2}});
  const Json reply = fixture.ask(kCompactPath, body);
  EXPECT_EQ(reply["object"], "chat.compaction");
  const auto summary = reply["summary"].get<std::string>();
  ASSERT_FALSE(summary.empty());
  const auto begin = chat::kept_turns_begin(body["messages"], 2);
  ASSERT_TRUE(begin);
  EXPECT_EQ(reply["messages"], chat::with_summary(body["messages"], *begin, summary));
  EXPECT_LT(reply["messages"].size(), body["messages"].size());
  EXPECT_LE(reply["usage"]["completion_tokens"], 12);
  // It is the answer to the question that a client could ask by itself.
  Json question = {{"messages", chat::summary_question(body["messages"], *begin)},
                   {"max_tokens", 12},
                   {"temperature", 0}};
  const Json direct = fixture.ask(kChatApiPath, question);
  const auto said = direct["choices"][0]["message"]["content"].get<std::string>();
  EXPECT_THAT(said, HasSubstr(summary));
}

// A server that hands a prompt over answers one token.
TEST(CompactionApi, ASummaryIsNotHandedOver) {
  const Json summary = compaction_fixture().ask(kCompactPath, compact_body(4))["summary"];
  const Json handed = {{"kv_transfer_params", {{"do_remote_decode", true}}}};
  EXPECT_EQ(compaction_fixture().ask(kCompactPath, compact_body(4, handed))["summary"], summary);
}

// Both are about the answer that a client wants: its tokens, and the text it expects.
TEST(CompactionApi, BiasAndPredictionAreNotTheSummarys) {
  StoryFixture& fixture = compaction_fixture();
  const Json plain = fixture.ask(kCompactPath, compact_body(4));
  Json bias = Json::object();
  for (int token = 300; token < 310; ++token) bias[std::to_string(token)] = 100;
  EXPECT_EQ(fixture.ask(kCompactPath, compact_body(4, {{"logit_bias", bias}}))["summary"],
            plain["summary"]);
  const Json prediction = {{"type", "content"}, {"content", plain["summary"]}};
  for (int i = 0; i < 4; ++i) {  // until it is known what rows cost here
    const Json reply = fixture.ask(kCompactPath, compact_body(4, {{"prediction", prediction}}));
    EXPECT_EQ(reply["summary"], plain["summary"]);
    const Json& details = reply["usage"]["completion_tokens_details"];
    EXPECT_EQ(details["accepted_prediction_tokens"].get<int>() +
                  details["rejected_prediction_tokens"].get<int>(),
              0);
  }
}

TEST(CompactionApi, TheNewPrefixIsFilledAhead) {
  StoryFixture fixture;
  const Json reply = fixture.ask(kCompactPath, compact_body(4));
  const auto filling = reply["filling_tokens"].get<std::uint64_t>();
  EXPECT_GT(filling, 0u);
  Json next = {{"messages", reply["messages"]}};
  std::uint64_t found = 0;
  for (int i = 0; i < 200 && found + 1 < filling; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    found = fixture.ask("/cache/explain", next)["matched_tokens"].get<std::uint64_t>();
  }
  EXPECT_GE(found + 1, filling);
}

TEST(CompactionApi, WhereNothingIsOlderTheMessagesComeBack) {
  StoryFixture& fixture = compaction_fixture();
  const Json body = compact_body(1);
  const Json reply = fixture.ask(kCompactPath, body);
  EXPECT_EQ(reply["messages"], body["messages"]);
  EXPECT_EQ(reply["summary"], "");
  EXPECT_EQ(reply["usage"]["total_tokens"], 0);
  const Json response = fixture.ask(kCompactResponsePath, {{"input", "Hello"}});
  EXPECT_TRUE(response["id"].get<std::string>().starts_with("resp_"));
  EXPECT_EQ(response["output"][0]["content"],
            Json::parse(R"([{"type": "input_text", "text": "Hello"}])"));
}

TEST(CompactionApi, AConversationBeyondTheContextIsSummarisedInPart) {
  StoryFixture& fixture = compaction_fixture();
  const Json body = {{"messages", long_chat(14)}, {"max_tokens", 12}, {"min_tokens", 4}};
  const Json reply = fixture.ask(kCompactPath, body);
  EXPECT_EQ(reply["prompt_truncated"]["type"], "middle");
  EXPECT_LT(reply["messages"].size(), body["messages"].size());
}

// Comparing each field with those before it would take minutes.
TEST(CompactionApi, ManyFieldsTakeLinearTime) {
  Json body = compact_body(8);
  Json::object_t::Container& fields = body.get_ref<Json::object_t&>();
  for (int i = 0; i < 500'000; ++i) fields.emplace_back("f" + std::to_string(i), 0);
  EXPECT_NE(compaction_fixture().ask(kCompactPath, body)["summary"], "");
}

TEST(CompactionApi, WrongFieldsAreRefusedByPath) {
  StoryFixture& fixture = compaction_fixture();
  const std::vector<std::pair<Json, const char*>> rows = {
      {{{"keep_turns", 0}}, "keep_turns: "},
      {{{"keep_turns", -1}}, "keep_turns: "},
      {{{"keep_turns", "2"}}, "keep_turns: "},
      {{{"keep_turns", 1e12}}, "keep_turns: "},
      {{{"stream", true}}, "stream: "},
      {{{"messages", "x"}}, "messages: "},
      {{{"messages", Json::array()}}, "messages: "},
      {{{"messages", Json::array({3})}}, "messages[0]"},
      {{{"temperature", "hot"}}, "temperature: "},
      {{{"tools", 3}}, "tools: "}};
  for (const auto& [more, message] : rows) {
    const HttpReply reply = fixture.post(kCompactPath, compact_body(4, more));
    EXPECT_EQ(reply.status, 400) << more;
    EXPECT_THAT(reply.body, HasSubstr(message)) << more;
  }
  EXPECT_EQ(fixture.post(kCompactPath, Json::object()).status, 400);
  EXPECT_EQ(fixture.post(kCompactResponsePath, Json::object()).status, 400);
  EXPECT_EQ(fixture.post(kCompactResponsePath, {{"previous_response_id", "resp_1"}}).status, 400);
}

TEST(CompactionApi, AResponsesItemsGoOnFromTheCompactionItem) {
  StoryFixture& fixture = compaction_fixture();
  const Json messages = long_chat(4);
  Json body = long_responses_body(messages);
  body.update({{"keep_turns", 2}, {"max_output_tokens", 12}, {"min_tokens", 4}});
  const Json reply = fixture.ask(kCompactResponsePath, body);
  EXPECT_EQ(reply["object"], "response.compaction");
  EXPECT_TRUE(reply["id"].get<std::string>().starts_with("resp_"));
  const Json& output = reply["output"];
  EXPECT_EQ(output[0]["role"], "system");
  EXPECT_EQ(output[0]["content"][0]["text"], body["input"][0]["content"]);
  EXPECT_EQ(output[1]["type"], "compaction");
  EXPECT_EQ(output[2]["role"], "user");
  EXPECT_EQ(output.back()["content"][0]["text"], body["input"].back()["content"]);
  EXPECT_GT(reply["usage"]["output_tokens"], 0);
  // The items are the chat that the other endpoint would have made.
  const auto content = output[1]["encrypted_content"].get<std::string>();
  ASSERT_TRUE(content.starts_with(responses::kSummaryMark));
  const std::string summary = content.substr(responses::kSummaryMark.size());
  const auto begin = chat::kept_turns_begin(messages, 2);
  const Json chat = chat::with_summary(messages, *begin, summary);
  const Json by_items = fixture.ask(
      "/v1/responses", {{"input", output}, {"temperature", 0}, {"max_output_tokens", 6}});
  const Json by_chat =
      fixture.ask(kChatApiPath, {{"messages", chat}, {"temperature", 0}, {"max_tokens", 6}});
  EXPECT_EQ(by_items["usage"]["input_tokens"], by_chat["usage"]["prompt_tokens"]);
  EXPECT_EQ(by_items["output"].back()["content"][0]["text"],
            by_chat["choices"][0]["message"]["content"]);
}

// Clients read items by their type, and refer to them by their id.
TEST(CompactionApi, MessagesComeBackAsItemsOfReplies) {
  const Json input = Json::parse(R"([{"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "21"},
    {"id": "msg_own", "type": "message", "status": "incomplete", "role": "user",
     "content": [{"type": "input_text", "text": "And?"}]}])");
  Json output = compaction_fixture().ask(kCompactResponsePath, {{"input", input}})["output"];
  ASSERT_EQ(output.size(), input.size());
  EXPECT_NE(output[0]["id"], output[1]["id"]);
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_TRUE(output[i]["id"].get<std::string>().starts_with("msg_"));
    output[i].erase("id");
  }
  EXPECT_EQ(output[0], Json::parse(R"({"type": "message", "status": "completed", "role": "user",
    "content": [{"type": "input_text", "text": "Hi"}]})"));
  EXPECT_EQ(output[1], Json::parse(R"({"type": "message", "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello", "annotations": []}]})"));
  for (const std::size_t i : {2u, 3u, 4u}) EXPECT_EQ(output[i], input[i]) << i;
}

TEST(CompactionApi, AnothersCompactionItemIsRefused) {
  const Json item = {{"type", "compaction"}, {"encrypted_content", "gAAAAABo"}};
  const HttpReply reply =
      compaction_fixture().post("/v1/responses", {{"input", Json::array({item})}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("input[0].encrypted_content: "));
}

// Values without text take memory, too: as members of the chat, of its messages and of items.
TEST(CompactionApi, WhatIsKeptUntilTheReplyIsCounted) {
  StoryFixture fixture;
  fixture.ask(kCompactPath, compact_body(4));  // what the first request of all makes is there
  const ByteBudget& memory = fixture.state().request_memory();
  const Json values = std::vector<Json>(60'000, Json::array());
  Json in_message = compact_body(4);
  in_message["messages"].back()["values"] = values;
  Json in_item = long_responses_body(long_chat(4));
  in_item["input"].back()["values"] = values;
  const Json kwargs = {{"chat_template_kwargs", {{"values", values}}}};
  Json in_translated = long_responses_body(long_chat(4));
  in_translated.update(kwargs);
  const std::pair<const char*, Json> bodies[] = {
      {kCompactPath, compact_body(4, {{"padding", values}})},
      {kCompactPath, compact_body(4, kwargs)},
      {kCompactPath, in_message},
      {kCompactResponsePath, in_item},
      {kCompactResponsePath, in_translated}};
  for (const auto& [path, body] : bodies) {
    HttpRequest request = {
        .method = "POST", .path = path, .content_type = "application/json", .body = body.dump()};
    request.caller = identify({}, fixture.state().keys());
    const HeldBytes held;
    const Routed open = route(request, fixture.state());
    ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Completion>>(open)) << path;
    EXPECT_GT(held.now(), 60'000u * sizeof(Json)) << path;
    EXPECT_GE(memory.bytes_held(), held.now()) << path;
  }
  EXPECT_EQ(memory.bytes_held(), 0u);
}

// Only the conversation that a client is about to continue is rendered without a prompt for an
// answer: here that takes long.
TEST(CompactionApi, TheNewPrefixIsRenderedOnATextWorker) {
  StoryServer server;
  server.set_template(
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
      "{% if not add_generation_prompt %}"
      "{% for i in range(2000) %}{% for j in range(300) %}{% if i == j + 5000 %}x{% endif %}"
      "{% endfor %}{% endfor %}{% endif %}");
  const double text_before = cpu_seconds_of("text");
  const double http_before = cpu_seconds_of("http");
  const auto reply = server.ask(posted(kCompactPath, compact_body(4).dump())).value_or("");
  EXPECT_THAT(reply, HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(reply, testing::Not(HasSubstr("\"filling_tokens\":0"))) << reply;
  const double http = cpu_seconds_of("http") - http_before;
  EXPECT_LT(http, 0.3 * (cpu_seconds_of("text") - text_before)) << http << " s";
}

class CompactionTenants : public TenantsFixture {
 protected:
  CompactionTenants()
      : TenantsFixture(
            "tenant brief output_tokens=5\nkey brief-key brief\n"
            "tenant small context_tokens=400\nkey small-key small\n") {}
};

TEST_F(CompactionTenants, ASummaryThatNamesNoLengthKeepsTheTenantsLimits) {
  const Json chat = {{"messages", long_chat(4)}};
  const Json items = {{"input", long_responses_body(long_chat(4))["input"]}};
  EXPECT_LE(ask("brief-key", kCompactPath, chat)["usage"]["completion_tokens"], 5);
  EXPECT_LE(ask("brief-key", kCompactResponsePath, items)["usage"]["output_tokens"], 5);
  // What is left beside a summary of an eighth of the context.
  const Json cut = ask("small-key", kCompactPath, {{"messages", long_chat(14)}});
  EXPECT_EQ(cut["prompt_truncated"]["limit_tokens"], 400 - 400 / 8);
}

}  // namespace
}  // namespace pagoda::server
