// Where a chat left an earlier one, told in the words of both clouds; and text that is normalised.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/prompt_normalising.h"
#include "server/request_fingerprints.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using ::testing::HasSubstr;

constexpr const char* kMessagesApi = "/v1/messages";
constexpr const char* kResponsesApi = "/v1/responses";
constexpr const char* kLily = "Lily and Tom went to the park and played with a big red ball.";

Json turn(const char* system, std::vector<const char*> texts) {
  Json messages = Json::array();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", texts[i]}});
  }
  return {{"model", "stories"},
          {"max_tokens", 2},
          {"temperature", 0},
          {"system", system},
          {"messages", messages}};
}

Json with_previous(Json body, const Json& id) {
  body["diagnostics"] = {{"previous_message_id", id}};
  return body;
}

TEST(CacheDiagnostics, OfMessagesNameWhatChanged) {
  StoryFixture fixture;
  const Json first = fixture.ask(kMessagesApi, turn(kLily, {kLily}));
  const Json id = first["id"];
  EXPECT_FALSE(first.contains("diagnostics")) << "nobody asked";
  const auto reason = [&](const Json& body) {
    const Json reply = fixture.ask(kMessagesApi, with_previous(body, id));
    EXPECT_TRUE(reply.contains("diagnostics"));
    EXPECT_TRUE(reply.contains("cache_explain")) << "ours stands beside it";
    return reply["diagnostics"];
  };
  EXPECT_EQ(reason(turn(kLily, {kLily})), nullptr);
  EXPECT_EQ(reason(turn(kLily, {kLily, "Yes.", "And?"})), nullptr) << "it goes on";
  const Json system = reason(turn("Be brief.", {kLily}))["cache_miss_reason"];
  EXPECT_EQ(system["type"], "system_changed");
  EXPECT_GT(system["cache_missed_input_tokens"], 20);
  const Json message = reason(turn(kLily, {"Something else."}))["cache_miss_reason"];
  EXPECT_EQ(message["type"], "messages_changed");
  EXPECT_LT(message["cache_missed_input_tokens"], system["cache_missed_input_tokens"]);
  Json tools = turn(kLily, {kLily});
  tools["tools"] = Json::parse(R"([{"name": "f", "input_schema": {"type": "object"}}])");
  EXPECT_EQ(reason(tools)["cache_miss_reason"]["type"], "tools_changed");
  const Json none = fixture.ask(kMessagesApi, with_previous(turn(kLily, {kLily}), nullptr));
  EXPECT_EQ(none["diagnostics"], nullptr) << "the first turn of a client that asks";
  const Json lost = fixture.ask(kMessagesApi, with_previous(turn(kLily, {kLily}), "msg_none"));
  EXPECT_EQ(lost["diagnostics"]["cache_miss_reason"]["type"], "previous_message_not_found");

  Json streamed = with_previous(turn("Be brief.", {kLily}), id);
  streamed["stream"] = true;
  const std::string events = fixture.post(kMessagesApi, streamed).body;
  EXPECT_THAT(events.substr(0, events.find("\n\n")), HasSubstr("\"type\":\"system_changed\""))
      << "message_start says it";
}

TEST(CacheDiagnostics, OfResponsesNameWhatChanged) {
  StoryFixture fixture;
  const auto body = [](const char* instructions, const char* input, const char* key = "k") {
    return Json{{"instructions", instructions},
                {"input", input},
                {"max_output_tokens", 2},
                {"temperature", 0},
                {"prompt_cache_key", key}};
  };
  const Json id = fixture.ask(kResponsesApi, body(kLily, kLily))["id"];
  const auto told = [&](Json asked, const Json& earlier) {
    asked["prompt_cache_options"] = {{"comparison_response_id", earlier}};
    return fixture.ask(kResponsesApi, asked)["prompt_cache_diagnostics"];
  };
  EXPECT_EQ(told(body(kLily, kLily), id), Json({{"type", "cache_hit"}}));
  const Json missed = told(body(kLily, "Something else."), id);
  EXPECT_EQ(missed["type"], "cache_miss");
  EXPECT_EQ(missed["reason"], "input_changed");
  EXPECT_GT(missed["comparison_reusable_tokens"], 10);
  EXPECT_GT(missed["cache_missed_tokens"], 10);
  EXPECT_EQ(told(body(kLily, kLily), "resp_0")["type"], "comparison_response_not_found");
  Json salted = body(kLily, kLily);
  salted["cache_salt"] = "other";
  EXPECT_EQ(told(salted, id)["type"], "unavailable");
}

TEST(CacheDiagnostics, CompareInTheOrderInWhichACacheNotices) {
  const RequestFingerprint before = {.prompt_tokens = 40,
                                     .pieces = {{0, 11, 10}, {1, 12, 20}, {2, 13, 36}}};
  const auto differs = [&](auto change) {
    RequestFingerprint now = before;
    change(now);
    return compare(before, now);
  };
  using Kind = FingerprintDifference::Kind;
  EXPECT_EQ(differs([](auto&) {}).kind, Kind::kNone);
  EXPECT_EQ(differs([](auto&) {}).tokens_missed, 0u);
  const auto cut = differs([](auto& now) { now.pieces.pop_back(); });
  EXPECT_EQ(cut.kind, Kind::kCompacted);
  EXPECT_EQ(cut.tokens_reusable, 20u);
  EXPECT_EQ(cut.tokens_missed, 20u);
  const auto changed = differs([](auto& now) { now.pieces[0].hash = 99; });
  EXPECT_EQ(changed.kind, Kind::kMessages);
  EXPECT_EQ(changed.tokens_missed, 40u);
  EXPECT_EQ(differs([](auto& now) { now.tools = now.system = now.options = 1; }).kind,
            Kind::kTools);
  EXPECT_EQ(differs([](auto& now) { now.system = now.format = 1; }).kind, Kind::kSystem);
  EXPECT_EQ(differs([](auto& now) { now.format = now.options = 1; }).kind, Kind::kFormat);
  EXPECT_EQ(differs([](auto& now) { now.session = "x"; }).kind, Kind::kSession);
}

TEST(RequestFingerprints, AreBoundedAndATenantsOwn) {
  RequestFingerprints store;
  const engine::TenantId modest(1);
  const engine::TenantId greedy(2);
  store.add(modest, "first", {.prompt_tokens = 7}, 0);
  for (int i = 0; i < 3000; ++i) store.add(greedy, std::to_string(i), {}, 0);
  EXPECT_EQ(store.size(), RequestFingerprints::kOfTenantMax + 1);
  EXPECT_EQ(store.find(modest, "first", 0)->prompt_tokens, 7u);
  EXPECT_FALSE(store.find(greedy, "first", 0).has_value());
  EXPECT_FALSE(store.find(greedy, "0", 0).has_value()) << "the oldest went";
  EXPECT_TRUE(store.find(greedy, "2999", 0).has_value());
  EXPECT_FALSE(store.find(modest, "first", RequestFingerprints::kLifeNs + 1).has_value());
  for (std::uint32_t tenant = 3; tenant < 60; ++tenant) {
    for (int i = 0; i < 200; ++i) store.add(engine::TenantId(tenant), std::to_string(i), {}, 1);
  }
  EXPECT_LE(store.size(), RequestFingerprints::kInAllMax);
}

TEST(NormalisePrompts, PutsAFixedTextWhereClientsChangeTheSystemPrompt) {
  const struct {
    const char* rules;
    const char* text;
    const char* served;
  } kCases[] = {
      {"claude-code", "x-anthropic-billing-header: cc_version=2.1; cch=0a1b;\nYou are",
       "x-anthropic-billing-header: -\nYou are"},
      {"date", "x-anthropic-billing-header: cch=0a1b;", "x-anthropic-billing-header: cch=0a1b;"},
      {"date", "Env:\n  Today's date: 2026-11-17\nEnd", "Env:\n  Today's date: -\nEnd"},
      {"date", "Current time: 12:00:01", "Current time: -"},
      {"claude-code,date", "Today is Monday.\nx-anthropic-billing-header: z",
       "Today is -\nx-anthropic-billing-header: -"},
      {"date", "He said: Today's date: 2026-11-17", "He said: Today's date: 2026-11-17"},
      {"date", "Today's date:", "Today's date:"},
      {"", "Today's date: 2026-11-17", "Today's date: 2026-11-17"}};
  for (const auto& one : kCases) {
    const NormaliseRules rules = read_normalise_rules(one.rules).value();
    Json messages = Json::array(
        {{{"role", "system"}, {"content", one.text}}, {{"role", "user"}, {"content", one.text}}});
    const auto replaced = normalise_messages(messages, rules);
    EXPECT_EQ(messages[0]["content"], one.served) << one.text;
    EXPECT_EQ(messages[1]["content"], one.text) << "what users say stays";
    EXPECT_EQ(replaced.empty(), std::string(one.text) == one.served);
    Json parts = Json::array(
        {{{"role", "system"}, {"content", Json::array({{{"type", "text"}, {"text", one.text}}})}}});
    normalise_messages(parts, rules);
    EXPECT_EQ(parts[0]["content"][0]["text"], one.served);
  }
  EXPECT_THAT(read_normalise_rules("date,uuid").error().message, HasSubstr("\"uuid\" is no rule"));
  Json flood = Json::array({{{"role", "system"}, {"content", repeated("Today is x\n", 1000)}}});
  EXPECT_EQ(normalise_messages(flood, {.date = true}).size(), kNormalisedMax);
}

TEST(NormalisePrompts, IsReportedAndWhatItSavesIsCounted) {
  const auto body = [](const char* hash) {
    return turn((std::string("x-anthropic-billing-header: cch=") + hash + ";\n" + kLily).c_str(),
                {kLily});
  };
  StoryFixture off;
  off.ask(kMessagesApi, body("aaaa"));
  Json asked = body("bbbb");
  asked["cache_explain"] = true;
  const Json missed = off.ask(kMessagesApi, asked);
  EXPECT_FALSE(missed.contains("prompt_normalised"));
  EXPECT_THAT(missed["cache_explain"]["advice"].get<std::string>(), HasSubstr("normalise_prompts"));
  EXPECT_THAT(missed["cache_explain"]["advice"].get<std::string>(), HasSubstr("claude-code"));

  StoryFixture on;
  on.set_normalise({.claude_code = true});
  const Json first = on.ask(kMessagesApi, body("aaaa"));
  EXPECT_EQ(first["prompt_normalised"]["lines"],
            Json::parse(R"([{"rule": "claude-code", "message": 0,
                             "served": "x-anthropic-billing-header: -"}])"));
  EXPECT_EQ(first["prompt_normalised"]["tokens_saved"], 0);
  const Json second = on.ask(kMessagesApi, body("bbbb"));
  EXPECT_EQ(second["usage"]["input_tokens"], 1) << "all but the last token was found";
  EXPECT_GT(second["prompt_normalised"]["tokens_saved"], 30);
  EXPECT_EQ(second["content"], first["content"]);
  const Json counted = on.ask("/v1/messages/count_tokens", body("cccc"));
  EXPECT_EQ(counted["input_tokens"], second["usage"]["cache_read_input_tokens"].get<int>() + 1)
      << "counted as it is served";
}

}  // namespace
}  // namespace pagoda::server
