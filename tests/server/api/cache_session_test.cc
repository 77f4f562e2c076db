// The endpoints that name a session, and what they show one tenant of another.
#include <gtest/gtest.h>

#include "server/tenants_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kSessionChats = "/v1/chat/completions";
constexpr const char* kClosePath = "/cache/session/close";
constexpr const char* kPrefetchPath = "/cache/prefetch";
constexpr const char* kDemotePath = "/cache/demote";

const std::string kRules =
    "You are kind. You like dogs, cats and birds. You never shout. You tell short stories about "
    "the park and the sea, and you never forget how they began.";

Json chat_about(const std::string& question) {
  return {{"messages", Json::array({{{"role", "system"}, {"content", kRules}},
                                    {{"role", "user"}, {"content", question}}})},
          {"max_tokens", 2},
          {"temperature", 0}};
}

Json in_session(Json body, const std::string& key) {
  body["prompt_cache_key"] = key;
  return body;
}

TEST(CacheSession, ASaltThatNoRequestMayHaveIsRefusedEverywhere) {
  StoryFixture fixture;
  for (const char* const path : {kClosePath, kPrefetchPath, kDemotePath}) {
    for (const std::string& salt : {std::string(513, 'x'), std::string()}) {
      const HttpReply reply = fixture.post(path, {{"session", "agent"}, {"cache_salt", salt}});
      EXPECT_EQ(reply.status, 400) << path << salt.size();
      EXPECT_EQ(Json::parse(reply.body)["error"]["param"], "cache_salt") << path;
    }
  }
  fixture.ask(kSessionChats, chat_about("Who is Tom?"));
  const Json body = {{"session", "agent"}, {"cache_salt", std::string(512, 'x')}};
  EXPECT_EQ(fixture.post(kClosePath, body).status, 404) << "it could be one, and is none";
}

class CacheSessionTenants : public TenantsFixture {
 protected:
  CacheSessionTenants()
      : TenantsFixture(
            "tenant anna\ntenant bert\ntenant press\n"
            "key anna-key anna\nkey bert-key bert\nkey press-key press may_publish\n") {}
};

TEST_F(CacheSessionTenants, ASessionOfOneIsNoOthers) {
  const Json turn = in_session(chat_about("Who is Tom?"), "agent");
  ask("anna-key", kSessionChats, turn);
  const Json named = {{"session", "agent"}};
  for (const char* const path : {kClosePath, kPrefetchPath, kDemotePath}) {
    EXPECT_EQ(post("bert-key", path, named).status, 404) << path;
  }
  EXPECT_EQ(ask("bert-key", kDemotePath, turn)["blocks_demoted"], 0);
  EXPECT_EQ(ask("bert-key", kPrefetchPath, turn)["cached_tokens"], 0);
  ask("bert-key", kSessionChats, turn);
  EXPECT_EQ(ask("bert-key", kClosePath, named)["closed"], true);
  const Json fetched = ask("anna-key", kPrefetchPath, named);
  EXPECT_EQ(fetched["cached_tokens"].get<int>(), fetched["prompt_tokens"].get<int>() - 1);
  EXPECT_EQ(ask("anna-key", kClosePath, named)["closed"], true) << "hers was open all the time";
}

// What others have below a prefix that everybody uses is nobody's business.
TEST_F(CacheSessionTenants, DemotingTellsNothingOfWhatOthersHave) {
  Json published = chat_about("Who are you?");
  published["cache_public_upto"] = "system";
  ask("press-key", kSessionChats, published);
  const Json question = chat_about("Who is Lily?");
  EXPECT_EQ(ask("anna-key", kDemotePath, question)["blocks_demoted"], 0);
  ask("bert-key", kSessionChats, question);
  EXPECT_EQ(ask("anna-key", kDemotePath, question)["blocks_demoted"], 0);
  EXPECT_GT(ask("bert-key", kDemotePath, question)["blocks_demoted"], 0);
}

TEST_F(CacheSessionTenants, AResetForgetsTheTenantsSessions) {
  const Json turn = in_session(chat_about("Who is Tom?"), "agent");
  for (const char* const key : {"anna-key", "bert-key"}) ask(key, kSessionChats, turn);
  EXPECT_EQ(post("anna-key", "/reset_prefix_cache", Json()).status, 200);
  const Json named = {{"session", "agent"}};
  EXPECT_EQ(post("anna-key", kPrefetchPath, named).status, 404);
  EXPECT_EQ(post("anna-key", kClosePath, named).status, 404);
  EXPECT_EQ(post("bert-key", kPrefetchPath, named).status, 200);
  EXPECT_EQ(post("bert-key", kClosePath, named).status, 200);
}

}  // namespace
}  // namespace pagoda::server
