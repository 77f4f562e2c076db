// Where a chat left an earlier one, told in the words of both clouds; and text that is normalised.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/api/prompt_fingerprint.h"
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
    EXPECT_EQ(reply.contains("cache_explain"), !reply["diagnostics"].is_null())
        << "ours stands beside a miss";
    return reply["diagnostics"];
  };
  EXPECT_EQ(reason(turn(kLily, {kLily})), nullptr);
  EXPECT_EQ(reason(turn(kLily, {kLily, "Yes.", "And?"})), nullptr) << "it goes on";
  Json effort = turn(kLily, {kLily});
  effort["output_config"] = {{"effort", "high"}};
  EXPECT_EQ(reason(effort), nullptr) << "this template does not show it: the prompt is the same";
  const Json system = reason(turn("Be brief.", {kLily}))["cache_miss_reason"];
  EXPECT_EQ(system["type"], "system_changed");
  EXPECT_GT(system["cache_missed_input_tokens"], 20);
  Json noted = turn(kLily, {kLily, "Yes."});
  noted["messages"].push_back({{"role", "system"}, {"content", "Be brief."}});
  noted["messages"].push_back({{"role", "user"}, {"content", "And?"}});
  EXPECT_EQ(reason(noted), nullptr) << "a system message that comes later is a message";
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
  Json noted = body(kLily, "");
  noted["input"] = Json::parse(R"([{"role": "user"}, {"role": "assistant", "content": "Yes."},
      {"role": "developer", "content": "Be brief."}, {"role": "user", "content": "And?"}])");
  noted["input"][0]["content"] = kLily;
  EXPECT_EQ(told(noted, id), Json({{"type", "cache_hit"}})) << "a note that comes later";
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

TEST(CacheDiagnostics, NameAnotherFormOfTheAnswerByWhateverFieldAsksForIt) {
  StoryFixture fixture;
  const auto body = [](const char* question, const Json& fields) {
    Json asked = {{"messages", {{{"role", "user"}, {"content", question}}}}, {"max_tokens", 2}};
    asked.update(fields);
    return asked;
  };
  const Json id = fixture.ask("/v1/chat/completions", body(kLily, Json::object()))["id"];
  const auto reason = [&](const Json& fields) -> Json {
    Json asked = body("Something else.", fields);
    asked["prompt_cache_options"] = {{"comparison_response_id", id}};
    return fixture.ask("/v1/chat/completions", asked)["prompt_cache_diagnostics"]["reason"];
  };
  for (const char* const fields :
       {R"({"response_format": {"type": "json_object"}})",
        R"({"structured_outputs": {"choice": ["a"]}})", R"({"guided_json": {"type": "string"}})",
        R"({"guided_regex": "a"})", R"({"guided_choice": ["a"]})",
        R"({"guided_grammar": "root ::= \"a\""})", R"({"json_schema": {"type": "string"}})",
        R"({"grammar": "root ::= \"a\""})"}) {
    EXPECT_EQ(reason(Json::parse(fields)), "text_format_changed") << fields;
  }
  for (const char* const fields : {"{}", R"({"response_format": {"type": "text"}})",
                                   R"({"grammar": ""})", R"({"structured_outputs": {}})"}) {
    EXPECT_EQ(reason(Json::parse(fields)), "input_changed") << fields;
  }
}

TEST(CacheDiagnostics, CompareInTheOrderInWhichACacheNotices) {
  const RequestFingerprint before = {
      .prompt_tokens = 40, .messages = 3, .pieces = {{0, 11, 10}, {1, 12, 20}, {2, 13, 36}}};
  const auto differs = [&](auto change) {
    RequestFingerprint now = before;
    change(now);
    return compare(before, now);
  };
  using Kind = FingerprintDifference::Kind;
  EXPECT_EQ(differs([](auto&) {}).kind, Kind::kNone);
  EXPECT_EQ(differs([](auto&) {}).tokens_missed, 0u);
  const auto cut = differs([](auto& now) {
    now.pieces.pop_back();
    now.messages = 2;
    now.prompt_tokens = 24;
  });
  EXPECT_EQ(cut.kind, Kind::kNone) << "a shorter prompt that the earlier one begins with";
  EXPECT_EQ(cut.tokens_missed, 0u);
  const auto summary = differs([](auto& now) {
    now.pieces = {{0, 11, 10}, {1, 77, 14}};
    now.messages = 2;
    now.prompt_tokens = 18;
  });
  EXPECT_EQ(summary.kind, Kind::kCompacted) << "fewer messages and fewer tokens, in other words";
  EXPECT_EQ(summary.tokens_reusable, 10u);
  EXPECT_EQ(summary.tokens_missed, 30u);
  const auto changed = differs([](auto& now) { now.pieces[0].hash = 99; });
  EXPECT_EQ(changed.kind, Kind::kMessages);
  EXPECT_EQ(changed.tokens_missed, 40u);
  const auto first = [](auto& now) { now.pieces[0].hash = 99; };
  const auto kind = [&](auto change) {
    EXPECT_EQ(differs(change).kind, Kind::kNone) << "where the tokens are the same";
    return differs([&](auto& now) {
             change(now);
             first(now);
           })
        .kind;
  };
  const auto tools = differs([](auto& now) { now.tools = now.system = now.options = 1; });
  EXPECT_EQ(tools.kind, Kind::kTools);
  EXPECT_EQ(tools.tokens_missed, 4u) << "the template's text behind the last message";
  EXPECT_EQ(differs([](auto& now) { now.system = now.format = 1; }).kind, Kind::kSystem);
  EXPECT_EQ(kind([](auto& now) { now.format = now.options = 1; }), Kind::kFormat);
  EXPECT_EQ(kind([](auto& now) { now.session = "x"; }), Kind::kSession);
}

// A prompt of `messages` messages with three tokens each; that of `changed` has another token.
text::PromptTokens tokens_of_messages(std::uint32_t messages, std::uint32_t changed = UINT32_MAX) {
  text::PromptTokens tokens;
  for (std::uint32_t i = 0; i < messages; ++i) {
    for (std::uint32_t k = 0; k < 3; ++k) {
      tokens.ids.emplace_back(k == 1 && i == changed ? 7777 : 10 * i + k);
      tokens.origins.push_back({k == 0 ? text::Source::kTemplate : text::Source::kUser,
                                k == 0 ? text::Origin::kNoMessage : i});
      tokens.begins.push_back(3 * i + k);
    }
  }
  return tokens;
}

TEST(CacheDiagnostics, OfLongConversationsNameTheMessageThatChanged) {
  using Kind = FingerprintDifference::Kind;
  constexpr std::uint32_t kMany = 3000;
  const engine::TenantId tenant(1);
  RequestFingerprints store;
  const auto of = [](const text::PromptTokens& tokens) { return fingerprint_of({}, tokens, 0); };
  for (const std::uint32_t messages : {2u, 255u, 256u, 257u, 300u, kMany}) {
    RequestFingerprint kept = of(tokens_of_messages(messages));
    kept.thin_out();
    store.add(tenant, "id", kept, 0);
    const RequestFingerprint before = store.find(tenant, "id", 0).value();
    EXPECT_LE(before.pieces.size(), RequestFingerprint::kPiecesMax);
    const auto same = compare(before, of(tokens_of_messages(messages)));
    EXPECT_EQ(same.kind, Kind::kNone) << messages;
    const auto longer = compare(before, of(tokens_of_messages(messages + 2)));
    EXPECT_EQ(longer.kind, Kind::kNone) << messages << ": it only goes on";
    EXPECT_EQ(longer.tokens_missed, 0u) << messages;
    // The last messages are told one by one; before them a change is told within some.
    const auto late = compare(before, of(tokens_of_messages(messages + 2, messages - 1)));
    EXPECT_EQ(late.kind, Kind::kMessages) << messages;
    EXPECT_EQ(late.tokens_reusable, 3 * (messages - 1)) << messages;
    EXPECT_EQ(late.tokens_missed, 3u) << messages;
    const auto early = compare(before, of(tokens_of_messages(messages + 2, messages / 4)));
    EXPECT_EQ(early.kind, Kind::kMessages) << messages;
    EXPECT_LE(early.tokens_reusable, 3 * (messages / 4)) << messages;
    EXPECT_GE(early.tokens_reusable + 3 * (messages / 100 + 1), 3 * (messages / 4)) << messages;
  }
  const auto compacted = compare(*store.find(tenant, "id", 0), of(tokens_of_messages(9, 1)));
  EXPECT_EQ(compacted.kind, Kind::kCompacted);
  EXPECT_EQ(compacted.tokens_reusable, 3u) << "the first message is the same";
}

TEST(RequestFingerprints, AreThoseOfRequestsThatWereAnswered) {
  StoryFixture narrow(1);
  const auto remembered = [&] { return narrow.state().fingerprints().size(); };
  narrow.ask("/cache/explain", turn(kLily, {kLily}));
  EXPECT_EQ(remembered(), 0u) << "nobody saw an id";
  narrow.ask(kMessagesApi, turn(kLily, {kLily}));
  EXPECT_EQ(remembered(), 1u);
  narrow.ask(kMessagesApi, [&] {
    Json fills = turn(kLily, {kLily});
    fills["max_tokens"] = 0;
    return fills;
  }());
  EXPECT_EQ(remembered(), 2u) << "also where nothing is written";
  // Of many at once all but a few are refused.
  std::vector<std::unique_ptr<Completion>> completions;
  for (int i = 0; i < 40; ++i) {
    Json body = turn(kLily, {kLily, std::to_string(i).c_str(), "And?"});
    body["max_tokens"] = 60;
    Routed routed = route({.method = "POST",
                           .path = kMessagesApi,
                           .content_type = "application/json",
                           .body = body.dump(),
                           .caller = identify("", nullptr)},
                          narrow.state());
    completions.push_back(std::get<std::unique_ptr<Completion>>(std::move(routed)));
    completions.back()->start([] {});
  }
  std::size_t answered = 0;
  for (const auto& completion : completions) {
    while (!completion->finished()) {
      completion->take();
      std::this_thread::yield();
    }
    answered += completion->error() ? 0 : 1;
  }
  ASSERT_LT(answered, completions.size());
  EXPECT_EQ(remembered(), 2 + answered);
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
      {"claude-code", "x-anthropic-billing-header: cc_version=2.1; cch=0a1b; You are x=1;",
       "x-anthropic-billing-header: - You are x=1;"},
      {"claude-code", "x-anthropic-billing-header: cch=0a1b", "x-anthropic-billing-header: -"},
      {"claude-code", "x-anthropic-billing-header: cc_version=2.1; cch=0a1b\r\nYou are",
       "x-anthropic-billing-header: -\r\nYou are"},
      {"claude-code", "x-anthropic-billing-header: cch=0a1b;\r\nYou are",
       "x-anthropic-billing-header: -\r\nYou are"},
      {"claude-code", "x-anthropic-billing-header: is what you must never send; obey.",
       "x-anthropic-billing-header: is what you must never send; obey."},
      {"date", "x-anthropic-billing-header: cch=0a1b;", "x-anthropic-billing-header: cch=0a1b;"},
      {"date", "Env:\n  Today's date: 2026-11-17\nEnd", "Env:\n  Today's date: -\nEnd"},
      {"date", "Env:\r\nToday's date: 2026-11-17\r\nEnd", "Env:\r\nToday's date: -\r\nEnd"},
      {"date", "Today is November 17, 2026\r\n", "Today is -\r\n"},
      {"date", "Today's date: 2026-11-17\r", "Today's date: -\r"},
      {"date", "Current time: 12:00:01", "Current time: -"},
      {"date", "Current date and time: 2026-11-17T12:00:01.5+01:00 (CET)",
       "Current date and time: - (CET)"},
      {"date", "Today is Tuesday, November 17th, 2026, and you are kind.",
       "Today is -, and you are kind."},
      {"date", "The current date is 17 Nov 2026 at 5:03 PM UTC. Be brief.",
       "The current date is -. Be brief."},
      {"date", "Current time: 1794900000", "Current time: -"},
      {"date", "Today is a good day to refactor; never touch main.",
       "Today is a good day to refactor; never touch main."},
      {"date", "Today is 3 times harder", "Today is 3 times harder"},
      {"date", "Today is Monday.", "Today is Monday."},
      {"claude-code,date", "Today is 2026-11-17.\nx-anthropic-billing-header: cch=z;",
       "Today is -.\nx-anthropic-billing-header: -"},
      {"date", "He said: Today's date: 2026-11-17", "He said: Today's date: 2026-11-17"},
      {"date", "Today's date:", "Today's date:"},
      {"", "Today's date: 2026-11-17", "Today's date: 2026-11-17"}};
  for (const auto& one : kCases) {
    const NormaliseRules rules = read_normalise_rules(one.rules).value();
    Json messages = Json::array({{{"role", "system"}, {"content", one.text}},
                                 {{"role", "user"}, {"content", one.text}},
                                 {{"role", "system"}, {"content", one.text}}});
    const auto replaced = normalise_messages(messages, rules);
    EXPECT_EQ(messages[0]["content"], one.served) << one.text;
    EXPECT_EQ(messages[1]["content"], one.text) << "what users say stays";
    EXPECT_EQ(messages[2]["content"], one.text) << "and what stands behind it";
    EXPECT_EQ(replaced.empty(), std::string(one.text) == one.served);
    Json parts = Json::array(
        {{{"role", "system"}, {"content", Json::array({{{"type", "text"}, {"text", one.text}}})}}});
    normalise_messages(parts, rules);
    EXPECT_EQ(parts[0]["content"][0]["text"], one.served);
  }
  EXPECT_THAT(read_normalise_rules("date,uuid").error().message, HasSubstr("\"uuid\" is no rule"));
  Json flood =
      Json::array({{{"role", "system"}, {"content", repeated("Today is 2026-11-17\n", 1000)}}});
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

  for (const char* const end : {"\n", "\r\n"}) {
    StoryFixture lines;
    const auto dated = [&](const char* day) {
      Json body =
          turn((std::string("Today's date: 2026-11-") + day + end + kLily).c_str(), {kLily});
      body["cache_explain"] = true;
      return lines.ask(kMessagesApi, body)["cache_explain"]["advice"].get<std::string>();
    };
    dated("17");
    EXPECT_THAT(dated("18"), HasSubstr("normalise_prompts")) << "the line ends before its end";
  }

  StoryFixture on;
  on.set_normalise({.claude_code = true});
  const Json first = on.ask(kMessagesApi, body("aaaa"));
  EXPECT_EQ(first["prompt_normalised"]["lines"],
            Json::parse(R"([{"rule": "claude-code", "message": null, "path": "system",
                             "served": "x-anthropic-billing-header: -"}])"));
  EXPECT_EQ(first["prompt_normalised"]["tokens_saved"], 0);
  const Json second = on.ask(kMessagesApi, body("bbbb"));
  EXPECT_EQ(second["usage"]["input_tokens"], 1) << "all but the last token was found";
  EXPECT_GT(second["prompt_normalised"]["tokens_saved"], 30);
  EXPECT_EQ(second["content"], first["content"]);
  EXPECT_EQ(on.ask(kMessagesApi, body("bbbb"))["prompt_normalised"]["tokens_saved"], 0)
      << "a text that did not change would have been found anyway";
  const Json counted = on.ask("/v1/messages/count_tokens", body("cccc"));
  EXPECT_EQ(counted["input_tokens"], second["usage"]["cache_read_input_tokens"].get<int>() + 1)
      << "counted as it is served";
}

}  // namespace
}  // namespace pagoda::server
