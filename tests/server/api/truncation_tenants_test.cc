// Truncation by the limits of tenants, and what it leaves public.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "server/api/long_chats.h"
#include "server/tenants_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;

class TruncationTenants : public TenantsFixture {
 protected:
  TruncationTenants()
      : TenantsFixture(
            "tenant small context_tokens=200\nkey small-key small\n"
            "tenant wide\nkey wide-key wide\n"
            "tenant other\nkey other-key other\n"
            "tenant press\nkey press-key press may_publish\n"
            "tenant ops\nkey ops-key ops admin\n") {}
};

TEST_F(TruncationTenants, ATenantsContextIsTheOneThatCounts) {
  Json body = long_chat_body(long_chat(3));
  body["truncation"] = "auto";
  const Json small = ask("small-key", kChatApiPath, body);
  EXPECT_EQ(small["prompt_truncated"]["limit_tokens"], 200 - 8);
  EXPECT_LE(small["usage"]["prompt_tokens"], 200 - 8);
  EXPECT_FALSE(ask("wide-key", kChatApiPath, body).contains("prompt_truncated"));
}

// What a client makes public is counted in tokens of its whole prompt: those that are left out do
// not make room for private ones.
TEST_F(TruncationTenants, WhatIsPublicDoesNotMoveToPrivateTurns) {
  Json body = long_chat_body(long_chat(16));
  body["truncation"] = "auto";
  const std::uint64_t system = ask("wide-key", "/v1/chat/completions/render",
                                   long_chat_body(Json::array({body["messages"][0]})))["token_ids"]
                                   .size();
  for (const auto& [upto, reader] : {std::pair(128, "wide-key"), std::pair(320, "other-key")}) {
    body["cache_public_upto"] = upto;
    const Json reply = ask("press-key", kChatApiPath, body);
    ASSERT_TRUE(reply.contains("prompt_truncated")) << reply;
    const Json shorter = without_dropped(body, "messages", reply["prompt_truncated"]);
    const Json found = ask(reader, kChatApiPath, long_chat_body(shorter["messages"]));
    const std::uint64_t cached = found["usage"]["prompt_tokens_details"]["cached_tokens"];
    EXPECT_LE(cached, system) << upto;
  }
  Json ids = Json::array();
  for (int i = 0; i < 160; ++i) ids.push_back(300 + i);
  // Of 160 tokens 40 are left out at the front, so that 56 of the 96 public ones are there.
  ask("press-key", kCompletionsPath,
      {{"prompt", ids},
       {"max_tokens", 1},
       {"truncate_prompt_tokens", 120},
       {"cache_public_upto", 96}});
  const Json last(std::vector<Json>(ids.end() - 120, ids.end()));
  const Json found = ask("wide-key", kCompletionsPath, {{"prompt", last}, {"max_tokens", 1}});
  const std::uint64_t cached = found["usage"]["prompt_tokens_details"]["cached_tokens"];
  EXPECT_GT(cached, 0u);
  EXPECT_LE(cached, 56u);
}

TEST_F(TruncationTenants, TheTenantsLimitIsNamedWhereAPromptPassesIt) {
  const auto refused = [&](const std::string& path, const Json& body) {
    const HttpReply reply = post("small-key", path, body);
    EXPECT_EQ(reply.status, 400) << reply.body;
    return Json::parse(reply.body)["error"];
  };
  const Json chat = refused(kChatApiPath, long_chat_body(long_chat(4)));
  EXPECT_EQ(chat["code"], "context_length_exceeded");
  EXPECT_EQ(chat["param"], "messages");
  EXPECT_THAT(chat["message"].get<std::string>(),
              testing::AllOf(testing::StartsWith("messages: has "),
                             HasSubstr("the limit of this tenant is 200")));
  const std::vector<int> ids(200, 5);
  const Json text = refused(kCompletionsPath, {{"prompt", ids}});
  EXPECT_EQ(text["code"], "context_length_exceeded");
  EXPECT_EQ(text["param"], "prompt");
  EXPECT_EQ(text["message"],
            "prompt: has 200 tokens, the limit of this tenant is 200 including at least one token "
            "of output");
  // Neither is the context named where a prompt passes that, too.
  const std::string words(20'000, 'a');
  const auto count = [&](const Json& body) {
    return ask("small-key", "/tokenize", body)["count"].dump();
  };
  EXPECT_EQ(refused(kCompletionsPath, {{"prompt", words}})["message"],
            "prompt: has " + count({{"prompt", words}}) +
                " tokens, the limit of this tenant is 200 including at least one token of output");
  EXPECT_EQ(refused(kCompletionsPath, {{"prompt", std::vector<int>(5'000, 5)}})["message"],
            "prompt: has 5000 tokens, the limit of this tenant is 200 including at least one token "
            "of output");
  const Json messages = {{{"role", "user"}, {"content", words}}};
  EXPECT_EQ(refused(kChatApiPath, long_chat_body(messages))["message"],
            "messages: has " + count({{"messages", messages}}) +
                " tokens, the limit of this tenant is 200 including at least one token of output");
  const std::vector<int> fits(190, 5);
  const Json output = refused(kCompletionsPath, {{"prompt", fits}, {"max_tokens", 11}});
  EXPECT_EQ(output["param"], "max_tokens");
  EXPECT_EQ(output["message"],
            "max_tokens: 11 and the prompt's 190 tokens make 201, the limit of this tenant is 200");
  // A length that nobody asked for gives way.
  EXPECT_EQ(ask("small-key", kCompletionsPath,
                {{"prompt", fits}, {"ignore_eos", true}})["usage"]["completion_tokens"],
            10);
}

TEST_F(TruncationTenants, WhoRetainsIsNamedToAnAdmin) {
  const std::vector<int> ids(64, 5);
  const auto retain = [&](const std::string& key) {
    ask(key, kCompletionsPath,
        {{"prompt", ids}, {"max_tokens", 1}, {"retain", {{"seconds", 600}, {"upto", 48}}}});
  };
  retain("small-key");
  retain("wide-key");
  const HttpReply reply = fixture_.send(
      {.method = "GET", .path = "/cache/retained", .authorization = "Bearer ops-key"});
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(Json::parse(reply.body)["tenants"],
            Json::parse(R"([{"tenant": "small", "blocks": 3}, {"tenant": "wide", "blocks": 3}])"));
}

// An output that is longer than what the context leaves is cut, not refused.
TEST_F(TruncationTenants, OutputsOfOtherApisGiveWayToATenantsContext) {
  const Json messages = Json::array({{{"role", "user"}, {"content", "Once"}}});
  Json body = long_messages_body(messages);
  body["max_tokens"] = 400;
  EXPECT_LE(ask("small-key", "/v1/messages", body)["usage"]["output_tokens"], 200);
  Json items = long_responses_body(messages);
  items["max_output_tokens"] = 400;
  EXPECT_LE(ask("small-key", "/v1/responses", items)["usage"]["total_tokens"], 200);
  const Json beyond = post("small-key", "/v1/messages", long_messages_body(long_chat(4))).body;
  EXPECT_THAT(beyond.get<std::string>(), HasSubstr("the limit of this tenant is 200"));
}

}  // namespace
}  // namespace pagoda::server
