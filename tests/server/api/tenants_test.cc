// Tenants through the API: a tenant cannot use what another computed, unless it was published.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "server/api/caller_fields.h"
#include "server/api/endpoints.h"
#include "server/tenants_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kKeys =
    "tenant anna requests_queued=5 output_tokens=40\n"
    "tenant bert priority_min=1\n"
    "tenant ops\n"
    "key anna-key anna\n"
    "key anna-other anna\n"
    "key bert-key bert\n"
    "key press-key bert may_publish\n"
    "key ops-key ops admin may_publish\n";

const std::string kTenantStory =
    "Once upon a time there was a little girl who loved to play outside in the park with her dog "
    "and her best friend, and one day they found a big red ball under the old tree.";

class Tenants : public TenantsFixture {
 protected:
  Tenants() : TenantsFixture(kKeys) {}

  int get(const std::string& key, const std::string& path) {
    const std::string authorization = key.empty() ? "" : "Bearer " + key;
    return fixture_.send({.method = "GET", .path = path, .authorization = authorization}).status;
  }
  Json complete(const std::string& key, Json more = Json::object()) {
    Json body = {{"prompt", kTenantStory}, {"max_tokens", 2}, {"temperature", 0}};
    body.update(more);
    return ask(key, "/v1/completions", body);
  }
  std::uint64_t cached(const std::string& key, const Json& more = Json::object()) {
    return complete(key, more)["usage"]["prompt_tokens_details"]["cached_tokens"];
  }
  std::uint64_t prompt_tokens() {
    return complete("anna-key")["usage"]["prompt_tokens"].get<std::uint64_t>();
  }
};

TEST_F(Tenants, AreIsolatedByDefaultAndSharedAmongTheirKeys) {
  EXPECT_EQ(cached("anna-key"), 0u);
  EXPECT_EQ(cached("anna-other"), prompt_tokens() - 1);
  EXPECT_EQ(cached("bert-key"), 0u);
}

TEST_F(Tenants, ASaltDividesATenantAndJoinsNoTwo) {
  const Json salted = {{"cache_salt", "same"}};
  EXPECT_EQ(cached("anna-key", salted), 0u);
  EXPECT_EQ(cached("anna-key", salted), prompt_tokens() - 1);
  EXPECT_EQ(cached("bert-key", salted), 0u);
  EXPECT_EQ(cached("anna-key", {{"cache_salt", "other"}}), 0u);
}

TEST_F(Tenants, TheSaltInTheCacheShowsNeitherNameNorSalt) {
  complete("anna-key", {{"cache_salt", "my project"}});
  std::promise<std::vector<std::string>> texts;
  fixture_.engine().post([&](kv::Cache& cache) {
    std::vector<std::string> found;
    for (std::uint32_t i = 0; i < cache.salts().numbers(); ++i) {
      found.emplace_back(cache.salts().text(kv::SaltId(i)));
    }
    texts.set_value(std::move(found));
  });
  const std::vector<std::string> found = texts.get_future().get();
  ASSERT_EQ(found.size(), 2u) << "the public region and one more";
  EXPECT_EQ(found[1].size(), 64u);
  EXPECT_EQ(found[1].find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST_F(Tenants, APublishedPrefixIsForEveryone) {
  EXPECT_EQ(cached("press-key", {{"cache_public_upto", 33}}), 0u);
  EXPECT_EQ(cached("anna-key"), 32u) << "whole blocks of 16";
  EXPECT_EQ(cached("bert-key"), prompt_tokens() - 1) << "its tenant's own";
}

TEST_F(Tenants, ASystemMessageCanBePublished) {
  const std::string rules =
      "You are kind. You like dogs, cats and birds. You never shout. "
      "You tell short stories about the park and the sea.";
  const auto ask = [&](const std::string& key, const std::string& question, const Json& more) {
    Json body = {{"messages", Json::array({{{"role", "system"}, {"content", rules}},
                                           {{"role", "user"}, {"content", question}}})},
                 {"max_tokens", 2}};
    body.update(more);
    const HttpReply reply = post(key, "/v1/chat/completions", body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return Json::parse(reply.body)["usage"]["prompt_tokens_details"];
  };
  ask("press-key", "Who are you?", {{"cache_public_upto", "system"}});
  const Json details = ask("anna-key", "Who are you?", Json::object());
  const std::uint64_t found = details["cached_tokens"];
  EXPECT_GE(found, 16u);
  EXPECT_EQ(found % 16, 0u);
  EXPECT_EQ(details["by_source"]["user"]["cached"], 0u) << details.dump();
}

TEST_F(Tenants, PublishingNeedsAKeyThatMay) {
  const Json body = {{"prompt", kTenantStory}, {"max_tokens", 1}, {"cache_public_upto", 16}};
  const HttpReply refused = post("anna-key", "/v1/completions", body);
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(Json::parse(refused.body)["error"]["param"], "cache_public_upto");
  for (const Json& wrong : {Json("prompt"), Json("system"), Json(0), Json(true)}) {
    Json bad = body;
    bad["cache_public_upto"] = wrong;
    EXPECT_EQ(post("ops-key", "/v1/completions", bad).status, 400) << wrong.dump();
  }
}

TEST_F(Tenants, OnesResetLeavesTheOthersAlone) {
  for (const char* const key : {"anna-key", "bert-key"}) complete(key);
  EXPECT_EQ(post("anna-key", "/reset_prefix_cache", Json()).status, 200);
  EXPECT_EQ(cached("anna-key"), 0u);
  EXPECT_EQ(cached("bert-key"), prompt_tokens() - 1);
  EXPECT_EQ(post("ops-key", "/reset_prefix_cache", Json()).status, 200);
  EXPECT_EQ(cached("anna-key"), 0u);
  EXPECT_EQ(cached("bert-key"), 0u);
}

TEST_F(Tenants, AreRemovedByAdminsAndNobodyElseIs) {
  const auto remove = [&](const std::string& key, const std::string& name) {
    return fixture_.send(
        {.method = "DELETE", .path = "/cache/tenant/" + name, .authorization = "Bearer " + key});
  };
  complete("anna-key");
  complete("anna-key", {{"cache_salt", "her project"}});
  complete("bert-key");
  EXPECT_EQ(remove("bert-key", "anna").status, 403);
  EXPECT_EQ(remove("ops-key", "nobody").status, 404);
  const HttpReply reply = remove("ops-key", "anna");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json told = Json::parse(reply.body);
  EXPECT_EQ(told["tenant"], "anna");
  EXPECT_EQ(told["removed_everywhere"], true);
  ASSERT_EQ(told["tiers"].size(), 1u);
  EXPECT_GE(told["tiers"][0]["blocks"], 4u);
  EXPECT_FALSE(told["tiers"][0].contains("blocks_pending"));
  EXPECT_EQ(cached("anna-key"), 0u);
  EXPECT_EQ(cached("anna-key", {{"cache_salt", "her project"}}), 0u);
  EXPECT_EQ(cached("bert-key"), prompt_tokens() - 1);
}

// Errors of stores name files and hosts.
TEST(Removals, OfTiersThatFailAreToldWithoutPaths) {
  std::FILE* const file = std::tmpfile();
  RequestLog log({.format = LogFormat::kNone}, file);
  const std::pair<ErrorCode, std::string> errors[] = {
      {ErrorCode::kIo, "/var/lib/pagoda/kv: its index is not read yet"},
      {ErrorCode::kUnsupported, "/var/lib/pagoda/kv is open read-only"},
      {ErrorCode::kExhausted, "redis://user@cache.internal:6379: no connection yet"},
      {ErrorCode::kCorrupt, "/var/lib/pagoda/kv/pages.index: \"x\" is no cursor"}};
  engine::TenantRemoval removal;
  removal.tiers.push_back({"pool", kv::Removal{.pages = 3}});
  for (const auto& [code, message] : errors)
    removal.tiers.push_back({"disk", Error{code, message}});
  const HttpReply reply = tell_removal("anna", 100, std::move(removal), log);
  EXPECT_EQ(reply.status, 200);
  const Json told = Json::parse(reply.body);
  EXPECT_EQ(told["removed_everywhere"], false);
  EXPECT_EQ(told["tiers"][0]["bytes"], 300);
  ASSERT_EQ(told["tiers"].size(), 5u);
  for (std::size_t i = 1; i < 5; ++i) {
    const auto error = told["tiers"][i]["error"].get<std::string>();
    EXPECT_EQ(error.find('/'), std::string::npos) << error;
    EXPECT_EQ(error.find("cache.internal"), std::string::npos) << error;
  }
  std::rewind(file);
  char text[4096] = {};
  const std::string written(text, std::fread(text, 1, sizeof text, file));
  std::fclose(file);
  for (const auto& [code, message] : errors) {
    EXPECT_NE(written.find(Json(message).dump()), std::string::npos) << written;
  }
}

TEST_F(Tenants, KeysOpenWhatTheirRightsSay) {
  for (const char* const path : {"/health", "/ready", "/version", "/ping"}) {
    EXPECT_EQ(get("", path), 200) << path;
  }
  for (const char* const path : {"/v1/models", "/no/such/path"}) {
    EXPECT_EQ(get("", path), 401) << path;
    EXPECT_EQ(get("wrong", path), 401) << path;
  }
  EXPECT_EQ(get("anna-key", "/v1/models"), 200);
  EXPECT_EQ(get("anna-key", "/no/such/path"), 404);
  for (const char* const path : {"/model_info", "/get_model_info", "/v1/loads", "/is_sleeping"}) {
    EXPECT_EQ(get("", path), 401) << path;
    EXPECT_EQ(get("anna-key", path), 200) << path;
  }
  for (const char* const path : {"/server_info", "/get_server_info", "/tenants", "/cache/retained",
                                 "/cache/map", "/cache/branch", "/cache/curve"}) {
    EXPECT_EQ(get("", path), 401) << path;
    EXPECT_EQ(get("anna-key", path), 403) << path;
    EXPECT_EQ(get("ops-key", path), 200) << path;
  }
  EXPECT_EQ(post("wrong", "/v1/completions", {{"prompt", "a"}}).status, 401);
  for (const char* const path : {"/reset_prefix_cache", "/flush_cache"}) {
    EXPECT_EQ(post("wrong", path, Json()).status, 401) << path;
    EXPECT_EQ(post("anna-key", path, Json()).status, 200) << path;
  }
}

TEST_F(Tenants, LimitsArePerTenant) {
  const Json body = {{"prompt", "Once"}, {"max_tokens", 41}};
  EXPECT_EQ(post("anna-key", "/v1/completions", body).status, 400);
  EXPECT_EQ(post("bert-key", "/v1/completions", body).status, 200);
}

TEST(BindToCaller, NobodyIsMoreUrgentThanItsTenantMayBe) {
  const auto bound = [](std::int32_t asked, std::int32_t least) {
    CompletionRequest request;
    request.engine.priority = asked;
    bind_to_caller(request, {.is_known = true, .priority_min = least});
    return request.engine.priority;
  };
  EXPECT_EQ(bound(-5, 0), 0);
  EXPECT_EQ(bound(0, 1), 1) << "also where nothing was asked";
  EXPECT_EQ(bound(7, 1), 7);
  EXPECT_EQ(bound(-5, INT32_MIN), -5) << "without keys";
}

TEST_F(Tenants, AreListedForAdmins) {
  const HttpReply reply =
      fixture_.send({.method = "GET", .path = "/tenants", .authorization = "Bearer ops-key"});
  const Json data = Json::parse(reply.body)["data"];
  ASSERT_EQ(data.size(), 3u);
  EXPECT_EQ(data[0]["name"], "anna");
  EXPECT_EQ(data[0]["keys"], 2);
  EXPECT_EQ(data[0]["requests_queued"], 5);
  EXPECT_FALSE(data[0].contains("kv_tokens"));
}

TEST_F(Tenants, WhatTheyHaveNowIsListedAndDrawnUnderTheirNames) {
  complete("anna-key");
  complete("anna-key", {{"cache_salt", "another of hers"}});
  complete("bert-key");
  const auto ask = [&](const std::string& path) {
    const HttpReply reply =
        fixture_.send({.method = "GET", .path = path, .authorization = "Bearer ops-key"});
    EXPECT_EQ(reply.status, 200) << reply.body;
    return Json::parse(reply.body);
  };
  const auto blocks_of = [&](std::size_t tenant) {
    return ask("/tenants")["data"][tenant]["now"]["kv_blocks"].get<std::uint64_t>();
  };
  const std::uint64_t each = (prompt_tokens() + 15) / 16;
  while (blocks_of(1) < each) std::this_thread::yield();
  EXPECT_GE(blocks_of(0), 2 * each) << "of both salts";
  EXPECT_EQ(blocks_of(2), 0u);
  const Json now = ask("/tenants")["data"][0]["now"];
  EXPECT_EQ(now["answers_running"], 0);
  EXPECT_EQ(now["requests_waiting"], 0);

  Json map = ask("/cache/map");
  while (map["age_s"].is_null()) map = ask("/cache/map");
  ASSERT_EQ(map["regions"].size(), 2u) << "one colour for each tenant";
  EXPECT_EQ(map["regions"][0]["tenant"], "anna");
  EXPECT_EQ(map["regions"][1]["tenant"], "bert");
}

TEST(Pages, OfOthersAreRefusedBeforeAnythingHappens) {
  StoryFixture fixture;
  HttpRequest request = {.method = "POST",
                         .path = "/reset_prefix_cache",
                         .host = "127.0.0.1:8000",
                         .origin = "https://evil.example"};
  EXPECT_EQ(fixture.send(request).status, 403);
  EXPECT_TRUE(refuse_early(request, fixture.state()).has_value());
  request.method = "OPTIONS";
  EXPECT_EQ(fixture.send(request).status, 403);
  request.origin = "http://127.0.0.1:8000";
  request.method = "POST";
  EXPECT_EQ(fixture.send(request).status, 200);
}

}  // namespace
}  // namespace pagoda::server
