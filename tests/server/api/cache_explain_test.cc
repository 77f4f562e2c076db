// "cache_explain" in requests, and POST /cache/explain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/cache_explain.h"
#include "server/api/changing_text.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;

constexpr const char* kStory =
    "Once upon a time there was a little girl named Lily who loved to play outside in the park "
    "with her friend Tom every single day";

Json text_body(const std::string& prompt) {
  return {{"prompt", prompt}, {"max_tokens", 2}, {"temperature", 0}, {"cache_explain", true}};
}

Json chat_body(const std::string& system, const std::string& question) {
  return {{"messages",
           {{{"role", "system"}, {"content", system}}, {{"role", "user"}, {"content", question}}}},
          {"max_tokens", 2},
          {"temperature", 0},
          {"cache_explain", true}};
}

Json told(StoryFixture& fixture, const Json& body) {
  const bool is_chat = body.contains("messages");
  return fixture.ask(is_chat ? "/v1/chat/completions" : "/v1/completions", body)["cache_explain"];
}

std::string advice_of(const Json& why) { return why["advice"].get<std::string>(); }

TEST(CacheExplain, IsToldBesideAnAnswerWhereAskedFor) {
  StoryFixture fixture;
  Json body = text_body(kStory);
  const Json cold = told(fixture, body);
  EXPECT_EQ(cold["reason"], "never_seen");
  EXPECT_EQ(cold["matched_tokens"], 0);
  EXPECT_EQ(cold["matched_by_tier"], Json({{"memory", 0}, {"tier", 0}}));
  const Json warm = told(fixture, body);
  EXPECT_EQ(warm["reason"], "none");
  EXPECT_EQ(warm["matched_tokens"], warm["prompt_tokens"].get<int>() - 1);
  EXPECT_EQ(warm["stored"], nullptr);
  EXPECT_EQ(warm["evicted"], nullptr);
  body.erase("cache_explain");
  EXPECT_FALSE(fixture.complete(body).contains("cache_explain"));
  body["cache_explain"] = "yes";
  EXPECT_EQ(fixture.post("/v1/completions", body).status, 400);
}

TEST(CacheExplain, SaysWhereTheSystemPromptChangesAndThatItIsADate) {
  StoryFixture fixture;
  const std::string before = "You tell stories to children. Today is ";
  told(fixture, chat_body(before + "2026-11-14. Be kind.", "Tell me one."));
  const Json why = told(fixture, chat_body(before + "2026-11-15. Be kind.", "Tell me one."));
  EXPECT_EQ(why["reason"], "differs");
  const Json& at = why["stopped_at"];
  EXPECT_EQ(at["source"], "system");
  EXPECT_EQ(at["message"], 0);
  EXPECT_EQ(at["character"], before.size() + 9) << "the day's last digit";
  EXPECT_EQ(at["token"], why["matched_tokens"]);
  EXPECT_EQ(at["asked"]["text"], "5");
  EXPECT_EQ(why["stored"]["text"], "4");
  EXPECT_THAT(
      advice_of(why),
      HasSubstr("the system prompt changes at character 48: a date (\"2026-11-15.\", in the "
                "cache \"2026-11-14.\")"));
}

// An answer that is sent back is tokenised together with what follows it.
TEST(CacheExplain, NamesTextThatIsTheSameInOtherTokens) {
  StoryFixture fixture;
  const std::vector<TokenId> words = fixture.tokenizer().encode(kStory, {});
  Json whole = Json::array();
  for (const TokenId id : words) whole.push_back(id.value());
  // The last token is never in the cache of a prompt: a token more stands behind what is compared.
  Json spelled = whole;
  spelled.erase(spelled.end() - 2, spelled.end());
  constexpr std::uint32_t kFirstByte = 3;  // <0x00> in this vocabulary
  for (std::size_t i = words.size() - 2; i < words.size(); ++i) {
    for (const char byte : fixture.tokenizer().bytes_of(words[i])) {
      spelled.push_back(kFirstByte + static_cast<unsigned char>(byte));
    }
  }
  Json body = text_body("");
  body["prompt"] = whole;
  told(fixture, body);
  body["prompt"] = spelled;
  const Json why = told(fixture, body);
  EXPECT_EQ(why["reason"], "differs");
  EXPECT_EQ(why["matched_tokens"], words.size() - 2);
  EXPECT_THAT(advice_of(why), HasSubstr("the prompt has the text that is in the cache, in other "
                                        "tokens"));
}

// What follows the tokens at which the match stopped is another matter: without it these would not
// have been found either.
TEST(CacheExplain, NamesOtherTokensThoughTheTextChangesBehindThem) {
  StoryFixture fixture;
  const std::vector<TokenId> words = fixture.tokenizer().encode(kStory, {});
  const std::size_t at = words.size() - 6;
  Json whole = Json::array();
  for (const TokenId id : words) whole.push_back(id.value());
  const auto told_after = [&](const Json& first, bool respells) {
    Json asked(std::vector<Json>(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at)));
    constexpr std::uint32_t kFirstByte = 3;  // <0x00> in this vocabulary
    for (const char byte : fixture.tokenizer().bytes_of(words[at])) {
      if (respells) asked.push_back(kFirstByte + static_cast<unsigned char>(byte));
    }
    for (int i = 0; i < 4; ++i) asked.push_back(kFirstByte + 'Q');
    Json body = text_body("");
    body["prompt"] = first;
    told(fixture, body);
    body["prompt"] = asked;
    return told(fixture, body);
  };
  const Json respelled = told_after(whole, true);
  EXPECT_EQ(respelled["matched_tokens"], at);
  EXPECT_THAT(advice_of(respelled), HasSubstr("the text that is in the cache, in other tokens"));
  const Json changed = told_after(whole, false);
  EXPECT_EQ(changed["matched_tokens"], at);
  EXPECT_THAT(advice_of(changed), testing::Not(HasSubstr("in other tokens")));
}

TEST(CacheExplain, NamesTheMessageThatChanges) {
  StoryFixture fixture;
  told(fixture, chat_body(kStory, "Does the dog run?"));
  const Json why = told(fixture, chat_body(kStory, "Does the cat run?"));
  EXPECT_EQ(why["reason"], "differs");
  EXPECT_EQ(why["stopped_at"]["source"], "user");
  EXPECT_EQ(why["stopped_at"]["message"], 1);
  EXPECT_EQ(why["stopped_at"]["character"], std::string("Does the ").size());
  EXPECT_THAT(advice_of(why), HasSubstr("messages[1] (user) changes at character 9 (\"cat\", in "
                                        "the cache \"dog\")"));
}

TEST(CacheExplain, NamesCallsAndAnswersThatAreWrittenAnew) {
  StoryFixture fixture;
  const auto with_arguments = [](const char* arguments) {
    Json body = chat_body("Be kind.", "How warm is it?");
    body["tools"] = Json::parse(R"([{"type": "function", "function": {"name": "look"}}])");
    Json function = {{"name", "look"}, {"arguments", arguments}};
    Json call = {{"id", "call_1"}, {"type", "function"}, {"function", function}};
    body["messages"].push_back({{"role", "assistant"}, {"content", nullptr}});
    body["messages"].back()["tool_calls"] = Json::array({call});
    body["messages"].push_back({{"role", "tool"}, {"tool_call_id", "call_1"}, {"content", "21"}});
    return body;
  };
  const auto advice = [&](const Json& first, const Json& second) {
    told(fixture, first);
    const Json why = told(fixture, second);
    EXPECT_EQ(why["reason"], "differs");
    return advice_of(why);
  };
  const std::string written = advice(with_arguments(R"({"city":"Rome","days":2})"),
                                     with_arguments(R"({"city": "Rome", "days": 2})"));
  EXPECT_TRUE(
      written.starts_with("messages[2] (assistant) is what is in the cache with other "
                          "white space"))
      << written;
  EXPECT_THAT(written, HasSubstr("the arguments of a call"));
  EXPECT_THAT(advice(with_arguments(R"({"city":"Oslo","days":2})"),
                     with_arguments(R"({"city":"Lima","days":2})")),
              testing::Not(HasSubstr("white space")));
  const auto answered = [](const char* role, const char* text) {
    Json body = chat_body("Be kind.", "Who is Lily?");
    body["messages"].push_back({{"role", role}, {"content", text}});
    return body;
  };
  EXPECT_THAT(advice(answered("assistant", "She is  a girl who plays."),
                     answered("assistant", "She is a girl who plays.")),
              HasSubstr("with other white space"));
  EXPECT_THAT(advice(answered("user", "She has  a ball, which is red."),
                     answered("user", "She has a ball, which is red.")),
              testing::Not(HasSubstr("white space")))
      << "users write what they like";
}

TEST(CacheExplain, CountsCharactersOfATextFromItsBeginning) {
  StoryFixture fixture;
  told(fixture, text_body("The d\u00f6g r\u00fcn and the b\u00e4ll is red and round"));
  const Json why =
      told(fixture, text_body("The d\u00f6g r\u00fcn and the b\u00e4ll is big and round"));
  EXPECT_EQ(why["reason"], "differs");
  EXPECT_EQ(why["stopped_at"]["character"], 28);
  EXPECT_THAT(advice_of(why), HasSubstr("the prompt changes at character 28 (\"big\""));
}

TEST(CacheExplain, IsToldAtTheEndOfAStreamAndForEachPromptOfABatch) {
  StoryFixture fixture;
  const std::vector<Json> events = fixture.stream("/v1/completions", text_body(kStory));
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_EQ(events.back()["cache_explain"]["reason"], "never_seen");
  Json body = text_body("");
  body["prompt"] = {kStory, "Another story altogether"};
  const Json both = told(fixture, body);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0]["reason"], "none");
  EXPECT_EQ(both[1]["stopped_at"]["token"], both[1]["matched_tokens"]);
  EXPECT_NE(both[1]["reason"], "none");
}

TEST(CacheExplain, OfItsOwnComputesNothing) {
  StoryFixture fixture;
  const Json body = chat_body(kStory, "Why?");
  EXPECT_NE(fixture.ask("/cache/explain", body)["reason"], "none");
  EXPECT_NE(fixture.ask("/cache/explain", body)["reason"], "none");
  EXPECT_EQ(fixture.engine().snapshot().tokens_computed, 0u);
  const Json reply = fixture.ask("/v1/chat/completions", body);
  const Json why = fixture.ask("/cache/explain", body);
  EXPECT_EQ(why["reason"], "none");
  EXPECT_EQ(why["prompt_tokens"], reply["usage"]["prompt_tokens"]);
  Json streamed = body;
  streamed["stream"] = true;
  streamed["n"] = 3;
  EXPECT_EQ(fixture.ask("/cache/explain", streamed)["reason"], "none") << "the same body will do";
  EXPECT_EQ(fixture.post("/cache/explain", {{"max_tokens", 3}}).status, 400);
  EXPECT_EQ(fixture.get("/cache/explain").status, 405);
}

TEST(KvEstimate, SaysWhatIsCachedAndWhenTheFirstTokenComes) {
  StoryFixture fixture;
  const Json body = chat_body(kStory, "Why?");
  const Json cold = fixture.ask("/v1/kv/estimate", body);
  EXPECT_EQ(cold["object"], "kv.estimate");
  EXPECT_EQ(cold["cached_tokens"], 0);
  EXPECT_EQ(cold["tokens_to_compute"], cold["prompt_tokens"]);
  EXPECT_EQ(cold["tokens_queued"], 0);
  EXPECT_EQ(cold["expected_ttft_ms"], nullptr) << "nothing was measured";
  EXPECT_EQ(cold["missing"]["reason"], "never_seen");
  EXPECT_EQ(fixture.engine().snapshot().tokens_computed, 0u);
  fixture.ask("/v1/chat/completions", body);
  const Json warm = fixture.ask("/v1/kv/estimate", body);
  EXPECT_EQ(warm["cached_tokens"], warm["prompt_tokens"].get<int>() - 1);
  EXPECT_EQ(warm["missing"]["reason"], "none");
  ASSERT_TRUE(warm["prefill_tokens_per_second"].is_number()) << "the prompt has more than a few";
  EXPECT_DOUBLE_EQ(warm["expected_ttft_ms"].get<double>(),
                   1e3 / warm["prefill_tokens_per_second"].get<double>())
      << "one token is left, and nobody waits";
  const Json both = fixture.ask("/v1/kv/estimate", {{"prompt", {kStory, "Another story"}}});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_LT(both[1]["prompt_tokens"], both[0]["prompt_tokens"]);
  EXPECT_EQ(fixture.post("/v1/kv/estimate", {{"max_tokens", 3}}).status, 400);
  EXPECT_EQ(fixture.get("/v1/kv/estimate").status, 405);
  for (const char* const path : {"/v1/kv/estimate", "/cache/explain"}) {
    EXPECT_EQ(fixture.ask(path, {{"prompt", std::vector<std::string>(64, "One")}}).size(), 64u);
    const HttpReply refused = fixture.post(path, {{"prompt", std::vector<std::string>(65, "One")}});
    EXPECT_EQ(refused.status, 400);
    EXPECT_NE(refused.body.find("has 65 prompts, at most 64"), std::string::npos) << refused.body;
  }
}

TEST(CacheExplain, KnowsTheReset) {
  StoryFixture fixture;
  told(fixture, text_body(kStory));
  fixture.post_text("/reset_prefix_cache", "");
  const Json why = told(fixture, text_body(kStory));
  EXPECT_EQ(why["reason"], "cleared");
  EXPECT_EQ(why["reachable_tokens"], why["prompt_tokens"].get<int>() - 1);
  EXPECT_EQ(why["evicted"]["cause"], "reset");
  EXPECT_GE(why["evicted"]["seconds_ago"], 0.0);
  EXPECT_THAT(advice_of(why), HasSubstr("the cache was reset"));
}

TEST(CacheExplain, SaysThatTiersAreSearchedWithTheRequestsSaltAlone) {
  StoryFixture fixture;
  Prompt prompt;
  prompt.tokens.assign(3, TokenId(300));
  prompt.sources.assign(3, text::Source::kUser);
  const OptionName option_name = plain_option_name;
  const auto advice = [&](kv::MissReason reason, bool salted_beside_tiers) {
    const kv::Explanation why = {.prompt_tokens = 3, .reason = reason, .tokens_reachable = 2};
    return advice_of(
        explain_json(why, prompt, fixture.tokenizer(),
                     {.salted_beside_tiers = salted_beside_tiers, .option_name = option_name}));
  };
  const char* const told = "tiers are searched with this request's salt alone";
  EXPECT_THAT(advice(kv::MissReason::kNeverSeen, true), HasSubstr(told));
  EXPECT_THAT(advice(kv::MissReason::kEvicted, true), HasSubstr(told));
  EXPECT_THAT(advice(kv::MissReason::kNeverSeen, false), testing::Not(HasSubstr(told)));
  EXPECT_THAT(advice(kv::MissReason::kInWork, true), testing::Not(HasSubstr(told)));
  EXPECT_EQ(advice(kv::MissReason::kSharingOff, true),
            "prefix caching is off: the server option enable_prefix_caching turns it on");
  EXPECT_THAT(advice(kv::MissReason::kWholeBlocks, true), HasSubstr("the last 3 tokens"));
}

TEST(CacheExplain, CountsMissesByReason) {
  StoryFixture fixture;
  told(fixture, text_body(kStory));
  told(fixture, text_body(kStory));
  const Json misses = Json::parse(fixture.get("/server_info").body)["since_start"]["misses"];
  EXPECT_EQ(misses["never_seen"]["requests"], 1);
  EXPECT_EQ(misses["none"], Json({{"requests", 1}, {"tokens", 1}}));
  EXPECT_EQ(misses["evicted"]["requests"], 0);
}

TEST(ChangingText, IsNamedWhereItIsOfAKindThatChangesByItself) {
  const auto kind = [](const std::string& asked, const std::string& stored) {
    const auto part = std::mismatch(asked.begin(), asked.end(), stored.begin(), stored.end());
    return changing_text(asked, stored, static_cast<std::size_t>(part.first - asked.begin())).kind;
  };
  EXPECT_EQ(kind("Today is 2026-11-15.", "Today is 2026-11-14."), "a date");
  EXPECT_EQ(kind("on 15/11/2026 we", "on 14/11/2026 we"), "a date");
  EXPECT_EQ(kind("It is 15 November 2026", "It is 14 November 2026"), "a date");
  EXPECT_EQ(kind("It is Sunday, and", "It is Monday, and"), "a date");
  EXPECT_EQ(kind("at 10:42 sharp", "at 10:43 sharp"), "a time");
  EXPECT_EQ(kind("user 17 asks", "user 18 asks"), "a number");
  EXPECT_EQ(kind("id 3f2a77b1c0 of", "id 99ab77b1c0 of"), "an id");
  EXPECT_EQ(kind("the cat runs", "the dog runs"), "");
  EXPECT_EQ(kind("room 17 is", "room service is"), "") << "no two of a kind";
  const ChangingText change = changing_text("a long word", "a lost word", 4);
  EXPECT_EQ(change.asked, "long");
  EXPECT_EQ(change.stored, "lost");
  EXPECT_EQ(changing_text("ends", "", 0).stored, "");
}

}  // namespace
}  // namespace pagoda::server
