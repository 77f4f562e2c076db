// What both clouds' clients say about the cache: marks become retention with a visible outcome,
// usage counts what was read and written, and no answer changes through any of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/cache_fields.h"
#include "server/api/cache_lifetime.h"
#include "server/api/given_pieces.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using ::testing::HasSubstr;

constexpr const char* kChats = "/v1/chat/completions";
constexpr const char* kMessages = "/v1/messages";
constexpr const char* kResponses = "/v1/responses";

constexpr const char* kLilysStory =
    "Once upon a time there was a little girl named Lily who loved to play outside in the park "
    "with her friend Tom every single day";

Json text_block(const char* text, Json mark = nullptr) {
  Json block = {{"type", "text"}, {"text", text}};
  if (!mark.is_null()) block["cache_control"] = std::move(mark);
  return block;
}

Json ephemeral(const char* ttl) { return {{"type", "ephemeral"}, {"ttl", ttl}}; }

// A system prompt kept for an hour, and a question kept for five minutes.
Json marked_message() {
  return {
      {"model", "stories"},
      {"max_tokens", 6},
      {"temperature", 0},
      {"system", Json::array({text_block(kLilysStory), text_block("Be brief.", ephemeral("1h"))})},
      {"messages", Json::array({{{"role", "user"},
                                 {"content", Json::array({text_block(kLilysStory, ephemeral("5m")),
                                                          text_block("And then?")})}}})}};
}

Json without_marks(Json body) {
  body.erase("cache_control");
  for (Json& part : body["system"]) part.erase("cache_control");
  for (Json& message : body["messages"]) {
    for (Json& part : message["content"]) part.erase("cache_control");
  }
  return body;
}

std::int64_t input_tokens(const Json& usage) {
  return usage["input_tokens"].get<std::int64_t>() +
         usage["cache_read_input_tokens"].get<std::int64_t>() +
         usage["cache_creation_input_tokens"].get<std::int64_t>();
}

TEST(CacheLifetime, IsReadAsTheCloudsWriteItAndClippedWhereItCannotBe) {
  const struct {
    const char* text;
    double seconds;
    const char* clipped;
  } kCases[] = {{"5m", 300, ""},    {"1h", 3600, ""},    {"30m", 1800, ""},
                {"12h", 43200, ""}, {"24h", 86400, ""},  {"90s", 90, ""},
                {"1d", 86400, ""},  {"2d", 86400, "2d"}, {"long", 60, "long"},
                {"5", 60, "5"},     {"m", 60, "m"},      {"0m", 60, "0m"},
                {"-5m", 60, "-5m"}, {"5mm", 60, "5mm"},  {"99999999999h", 60, "99999999999h"}};
  for (const auto& one : kCases) {
    const CacheLifetime read = read_lifetime(one.text, 60);
    EXPECT_EQ(read.seconds, one.seconds) << one.text;
    EXPECT_EQ(read.clipped, one.clipped) << one.text;
  }
}

TEST(CacheMarks, OfMessagesAreKeptForTheirLifetimes) {
  StoryFixture fixture;
  const Json reply = fixture.ask(kMessages, marked_message());
  const Json& kept = reply["cache_retention"];
  ASSERT_EQ(kept.size(), 2u) << reply.dump(1);
  EXPECT_EQ(kept[0]["outcome"], "granted");
  EXPECT_EQ(kept[0]["seconds"], 3600.0);
  EXPECT_EQ(kept[1]["outcome"], "granted");
  EXPECT_EQ(kept[1]["seconds"], 300.0);
  const int system = kept[0]["asked_tokens"];
  const int question = kept[1]["asked_tokens"];
  EXPECT_EQ(kept[0]["tokens"], system / 16 * 16) << "whole blocks";
  EXPECT_GT(question, system + 30);
  const Json& usage = reply["usage"];
  const std::int64_t all = input_tokens(usage);
  EXPECT_GT(all, question) << "the last part is not marked";
  EXPECT_EQ(usage["cache_creation"]["ephemeral_1h_input_tokens"], kept[0]["tokens"]);
  EXPECT_EQ(usage["cache_creation"]["ephemeral_5m_input_tokens"],
            kept[1]["tokens"].get<int>() - kept[0]["tokens"].get<int>());
  EXPECT_EQ(usage["cache_creation_input_tokens"], kept[1]["tokens"]);
  EXPECT_EQ(Json::parse(fixture.get("/cache/retained").body)["grants"].size(), 2u);

  const Json again = fixture.ask(kMessages, marked_message());
  EXPECT_EQ(again["usage"]["cache_read_input_tokens"], all - 1);
  EXPECT_EQ(again["usage"]["input_tokens"], 1);
  EXPECT_EQ(again["usage"]["cache_creation_input_tokens"], 0);
  EXPECT_EQ(again["content"], reply["content"]);
}

TEST(CacheMarks, ChangeNeitherThePromptNorTheAnswer) {
  StoryFixture marked;
  StoryFixture plain;
  const Json cold = marked.ask(kMessages, marked_message());
  const Json bare = plain.ask(kMessages, without_marks(marked_message()));
  EXPECT_EQ(cold["content"], bare["content"]);
  EXPECT_EQ(input_tokens(cold["usage"]), input_tokens(bare["usage"]));
  EXPECT_FALSE(bare.contains("cache_retention"));
  EXPECT_EQ(bare["usage"]["cache_creation_input_tokens"], 0);
  const Json warm = marked.ask(kMessages, without_marks(marked_message()));
  EXPECT_EQ(warm["content"], bare["content"]);
  EXPECT_EQ(warm["usage"]["input_tokens"], 1) << "the same prompt, though it carries no marks";
}

// The end of a part: chats of one part more, whose prompts share no more than the marked prefix.
TEST(CacheMarks, StandBehindTheirPart) {
  StoryFixture fixture;
  const auto asked = [&](const Json& parts) {
    const Json reply = fixture.ask(
        kChats,
        {{"messages", Json::array({{{"role", "user"}, {"content", parts}}})}, {"max_tokens", 1}});
    return reply["cache_retention"].empty()
               ? 0
               : reply["cache_retention"][0]["asked_tokens"].get<int>();
  };
  const Json mark = {{"mode", "explicit"}, {"ttl", "30m"}};
  const auto part = [&](const char* text, bool is_marked) {
    Json made = {{"type", "text"}, {"text", text}};
    if (is_marked) made["prompt_cache_breakpoint"] = mark;
    return made;
  };
  const int first = asked(Json::array({part(kLilysStory, true), part(kLilysStory, false)}));
  const int second = asked(Json::array({part(kLilysStory, false), part(kLilysStory, true)}));
  const int alone = asked(Json::array({part(kLilysStory, true)}));
  EXPECT_EQ(first, alone) << "what follows does not matter";
  EXPECT_GT(second, first + 30);
}

TEST(CacheMarks, OfTheBodyAndItsOptionsKeepTheWholePrompt) {
  const Json kCases[] = {{{"cache_control", ephemeral("5m")}},
                         {{"prompt_cache_retention", "24h"}},
                         {{"prompt_cache_options", {{"ttl", "30m"}}}}};
  for (const Json& fields : kCases) {
    StoryFixture fixture;
    for (const char* const path : {kChats, kCompletionsPath}) {
      Json body = {{"max_tokens", 2}, {"temperature", 0}};
      if (path == kChats) {
        body["messages"] = Json::array({{{"role", "user"}, {"content", kLilysStory}}});
      } else {
        body["prompt"] = kLilysStory;
      }
      body.update(fields);
      const Json reply = fixture.ask(path, body);
      ASSERT_EQ(reply["cache_retention"].size(), 1u) << reply.dump(1);
      EXPECT_EQ(reply["cache_retention"][0]["outcome"], "granted");
      EXPECT_EQ(reply["cache_retention"][0]["asked_tokens"], reply["usage"]["prompt_tokens"]);
      EXPECT_EQ(reply["usage"]["prompt_tokens_details"]["cache_write_tokens"],
                reply["usage"]["prompt_tokens"].get<int>() -
                    reply["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>());
    }
  }
  StoryFixture fixture;
  const Json plain = fixture.complete({{"prompt", kLilysStory},
                                       {"max_tokens", 1},
                                       {"prompt_cache_retention", "in_memory"},
                                       {"prompt_cache_options", {{"mode", "explicit"}}}});
  EXPECT_FALSE(plain.contains("cache_retention"));
}

TEST(CacheMarks, ThatCannotBeObeyedAreClippedOrRefusedWithTheReason) {
  StoryFixture fixture;
  Json body = marked_message();
  body["messages"][0]["content"][0]["cache_control"]["ttl"] = "3d";
  const Json clipped = fixture.ask(kMessages, body)["cache_retention"][1];
  EXPECT_EQ(clipped["outcome"], "clipped");
  EXPECT_EQ(clipped["seconds"], 86400.0);
  EXPECT_EQ(clipped["limit"], "\"3d\" became 86400 s");

  Json many = body;
  many["messages"] = Json::array();
  for (int i = 0; i < 7; ++i) {
    many["messages"].push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"},
         {"content",
          Json::array({text_block("Lily ran to Tom and Tom ran to Lily.", ephemeral("5m"))})}});
  }
  const Json kept = fixture.ask(kMessages, many)["cache_retention"];
  ASSERT_EQ(kept.size(), 5u);
  EXPECT_EQ(kept[4]["outcome"], "refused");
  EXPECT_THAT(kept[4]["reason"].get<std::string>(), HasSubstr("4 marks too many"));

  // The budget fills: what fits is kept, then nothing.
  bool was_clipped = false;
  Json last;
  for (int i = 0; i < 2000 && last["outcome"] != "refused"; ++i) {
    last =
        fixture.ask(kCompletionsPath, {{"prompt", std::to_string(i) + repeated(kLilysStory, 7)},
                                       {"max_tokens", 1},
                                       {"cache_salt", "greedy"},
                                       {"cache_control", ephemeral("1h")}})["cache_retention"][0];
    was_clipped = was_clipped || last["outcome"] == "clipped";
  }
  EXPECT_EQ(last["outcome"], "refused");
  EXPECT_TRUE(was_clipped);
  EXPECT_THAT(last["reason"].get<std::string>(), HasSubstr("but the tenant keeps"));
}

TEST(CacheMarks, AreToldAtTheEndOfStreamsWithoutAChunkMore) {
  StoryFixture fixture;
  Json body = {{"messages", Json::array({{{"role", "user"}, {"content", kLilysStory}}})},
               {"max_tokens", 3},
               {"temperature", 0}};
  const std::size_t chunks = fixture.stream(kChats, body).size();
  body["cache_control"] = ephemeral("5m");
  const std::vector<Json> events = fixture.stream(kChats, body);
  EXPECT_EQ(events.size(), chunks);
  EXPECT_EQ(events.back()["cache_retention"][0]["outcome"], "granted");
  EXPECT_FALSE(events.back()["choices"].empty());

  Json message = marked_message();
  message["stream"] = true;
  const std::string stream = fixture.post(kMessages, message).body;
  const std::size_t delta = stream.find("event: message_delta");
  ASSERT_NE(delta, std::string::npos);
  EXPECT_THAT(stream.substr(delta), HasSubstr("\"cache_retention\":[{\"outcome\":\"granted\""));
  EXPECT_THAT(stream.substr(delta), HasSubstr("\"ephemeral_1h_input_tokens\""));
}

TEST(Prewarm, FillsTheCacheWithoutAnAnswer) {
  const Json chat = {{"messages", Json::array({{{"role", "user"}, {"content", kLilysStory}}})},
                     {"temperature", 0}};
  Json message = without_marks(marked_message());
  Json input = {{"input", kLilysStory}, {"temperature", 0}};
  const auto with = [](Json body, const char* name, Json value) {
    body[name] = std::move(value);
    return body;
  };
  const struct {
    const char* path;
    Json warm_up;
    Json question;
  } kCases[] = {
      {kChats, with(chat, "max_tokens", 0), with(chat, "max_tokens", 5)},
      {kChats, with(with(chat, "max_tokens", 5), "prompt_cache_options", {{"prewarm", true}}),
       with(chat, "max_tokens", 5)},
      {kMessages, with(message, "max_tokens", 0), message},
      {kResponses,
       with(with(input, "max_output_tokens", 9), "prompt_cache_options", {{"prewarm", true}}),
       with(input, "max_output_tokens", 9)},
  };
  for (const auto& one : kCases) {
    StoryFixture cold;
    StoryFixture warm;
    const Json filled = warm.ask(one.path, one.warm_up);
    const std::string output = one.path == kChats ? "completion_tokens" : "output_tokens";
    EXPECT_EQ(filled["usage"][output], 0) << filled.dump(1);
    if (one.path == kChats) {
      EXPECT_EQ(filled["choices"][0]["message"]["content"], "");
    }
    if (one.path == kMessages) {
      EXPECT_EQ(filled["content"], Json::array());
      EXPECT_EQ(filled["stop_reason"], "max_tokens");
    }
    if (one.path == kResponses) {
      EXPECT_EQ(filled["status"], "completed");
    }
    Json answer = warm.ask(one.path, one.question);
    Json expected = cold.ask(one.path, one.question);
    if (one.path == kMessages) {
      EXPECT_EQ(answer["usage"]["input_tokens"], 1) << "all but the last token was there";
      EXPECT_EQ(answer["content"], expected["content"]);
    } else if (one.path == kChats) {
      EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"],
                answer["usage"]["prompt_tokens"].get<int>() - 1);
      EXPECT_EQ(answer["choices"][0]["message"], expected["choices"][0]["message"]);
    } else {
      EXPECT_EQ(answer["output"][0]["content"], expected["output"][0]["content"]);
    }
  }
}

Json chat_of(std::vector<std::string> texts) {
  Json messages = Json::array({{{"role", "system"}, {"content", kLilysStory}}});
  for (std::size_t i = 0; i < texts.size(); ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", texts[i]}});
  }
  return {{"messages", messages}, {"max_tokens", 4}, {"temperature", 0}};
}

TEST(Sessions, AreNamedByTheBodyOrAHeaderAndEndOnRequest) {
  StoryFixture fixture;
  const auto sessions = [&] { return fixture.engine().snapshot().sessions; };
  const Json plain = fixture.ask(kChats, chat_of({"Who is Tom?"}));
  EXPECT_EQ(sessions(), 0u);
  Json keyed = chat_of({"Who is Tom?"});
  keyed["prompt_cache_key"] = "agent";
  EXPECT_EQ(fixture.ask(kChats, keyed)["choices"][0]["message"], plain["choices"][0]["message"]);
  fixture.ask(kChats, keyed);
  EXPECT_EQ(sessions(), 1u);
  HttpRequest named = {.method = "POST",
                       .path = kChats,
                       .content_type = "application/json",
                       .body = chat_of({"Who is Lily?"}).dump()};
  named.session = "header";
  EXPECT_EQ(fixture.send(named).status, 200);
  EXPECT_EQ(sessions(), 2u);
  Json message = without_marks(marked_message());
  message["prompt_cache_key"] = repeated("long", 100);
  fixture.ask(kMessages, message);
  EXPECT_EQ(sessions(), 3u) << "in every API, with keys of any length";

  const Json closed = fixture.ask("/cache/session/close", {{"session", "agent"}});
  EXPECT_EQ(closed["closed"], true);
  EXPECT_EQ(fixture.post("/cache/session/close", {{"session", "agent"}}).status, 404);
  EXPECT_EQ(fixture.post("/cache/session/close", Json::object()).status, 400);
  fixture.ask("/cache/session/close", {{"session", repeated("long", 100)}});
  const Json other = {{"session", "header"}, {"cache_salt", "other"}};
  EXPECT_EQ(fixture.post("/cache/session/close", other).status, 404) << "of another region";
  const Json again = fixture.ask(kChats, keyed);
  EXPECT_EQ(again["choices"][0]["message"], plain["choices"][0]["message"]);
  EXPECT_EQ(again["usage"]["prompt_tokens_details"]["cached_tokens"],
            again["usage"]["prompt_tokens"].get<int>() - 1)
      << "a session that ended is found while it is there";
}

TEST(CacheActions, WithoutTiersTellWhatIsThere) {
  StoryFixture fixture;
  const Json body = chat_of({"Who is Tom?"});
  EXPECT_EQ(fixture.ask("/cache/prefetch", body)["cached_tokens"], 0) << "nothing is computed";
  Json keyed = body;
  keyed["prompt_cache_key"] = "agent";
  const Json answer = fixture.ask(kChats, keyed);
  const int prompt = answer["usage"]["prompt_tokens"];
  EXPECT_EQ(fixture.ask("/cache/prefetch", body)["cached_tokens"], prompt - 1);
  EXPECT_EQ(fixture.ask("/cache/prefetch", {{"session", "agent"}})["prompt_tokens"], prompt);
  EXPECT_EQ(fixture.post("/cache/prefetch", {{"session", "nobody"}}).status, 404);
  EXPECT_EQ(fixture.post("/cache/prefetch", {{"prompt", {"a", "b"}}}).status, 400);
  const Json demoted = fixture.ask("/cache/demote", body);
  EXPECT_GE(demoted["blocks_demoted"], prompt / 16);
  EXPECT_EQ(fixture.ask(kChats, body)["choices"][0]["message"], answer["choices"][0]["message"]);
  EXPECT_EQ(fixture.ask("/cache/demote", {{"session", "agent"}})["closed"], true);
}

TEST(Usage, CountsWhatWasWrittenByLifetime) {
  const auto kept = [](std::uint64_t tokens, const char* refused = "") {
    return engine::RetainOutcome{.tokens = tokens, .blocks = 1, .refused = refused};
  };
  const std::vector<Breakpoint> asked = {{40, {3600}}, {90, {300}}, {100, {60}}};
  const auto shares = written_shares(asked, {kept(32), kept(80), kept(0, "no")}, 16);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].seconds, 3600);
  EXPECT_EQ(shares[0].tokens, 16u) << "16 of 32 were there before";
  EXPECT_EQ(shares[1].seconds, 300);
  EXPECT_EQ(shares[1].tokens, 48u);
  const auto longer = written_shares({{40, {300}}, {90, {3600}}}, {kept(32), kept(80)}, 0);
  ASSERT_EQ(longer.size(), 2u);
  EXPECT_EQ(longer[0].seconds, 3600) << "the longer lifetime covers what lies before it";
  EXPECT_TRUE(written_shares(asked, {kept(32), kept(80), kept(96)}, 200).empty());
}

}  // namespace
}  // namespace pagoda::server
