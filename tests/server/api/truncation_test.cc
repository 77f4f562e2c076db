// Prompts that are too long for the context: turns that go, and tokens that go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/chat_prompt.h"
#include "server/api/long_chats.h"
#include "server/api/translated_chat.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

StoryFixture& truncation_fixture() {
  static StoryFixture fixture;
  return fixture;
}

Json with_field(Json body, const char* name, Json value) {
  body[name] = std::move(value);
  return body;
}

Json refusal_of(const HttpReply& reply) {
  EXPECT_EQ(reply.status, 400) << reply.body;
  const Json body = Json::parse(reply.body);
  return body["error"].is_object() ? body["error"] : body;
}

// Every result that is left has its call before it, and every call all of its results.
void expect_whole_pairs(const Json& all, const Json& kept) {
  const auto ids = [](const Json& messages, bool results) {
    std::vector<std::string> found;
    for (const Json& message : messages) {
      if (results && message["role"] == "tool") found.push_back(message["tool_call_id"]);
      for (const Json& call :
           results ? Json::array() : message.value("tool_calls", Json::array())) {
        found.push_back(call["id"]);
      }
    }
    return found;
  };
  EXPECT_EQ(ids(kept, true), ids(kept, false));
  EXPECT_LT(kept.size(), all.size());
}

// What a truncated chat answers is what the chat without the dropped messages answers, in every API
// and with nothing or all of it in the cache.
TEST(Truncation, IsTheChatWithoutWhatTheReplySaysWasDropped) {
  StoryFixture& fixture = truncation_fixture();
  const std::vector<std::pair<const char*, Json>> chats = {{"turns", long_chat(12)},
                                                           {"agent", long_agent(24)}};
  for (const ChatApi& api : all_apis()) {
    for (const auto& [name, messages] : chats) {
      for (const char* const type : {"auto", "middle"}) {
        SCOPED_TRACE(std::string(api.name) + " " + name + " " + type);
        const bool is_ollama = std::string(api.name) == "ollama";
        if (is_ollama && std::string(type) == "middle") continue;
        Json body = api.body(messages);
        if (!is_ollama) body["truncation"] = {{"type", type}, {"keep", "system"}};
        ASSERT_EQ(fixture.post("/reset_prefix_cache", Json::object()).status, 200);
        const Json reply = fixture.ask(api.path, body);
        EXPECT_EQ(reply["truncated"], true);
        const Json& truncated = reply["prompt_truncated"];
        EXPECT_EQ(truncated["type"], type);
        EXPECT_GT(truncated["dropped_tokens"], 0);
        EXPECT_EQ(truncated["dropped"].size(), 1u);
        EXPECT_LE(api.prompt_tokens(reply), truncated["limit_tokens"].get<std::uint64_t>());
        EXPECT_THAT(truncated["dropped"][0]["from"].get<std::string>(), StartsWith(api.member));
        Json shorter = without_dropped(body, api.member, truncated);
        shorter.erase("truncation");
        if (is_ollama) shorter["truncate"] = false;
        const Json direct = fixture.ask(api.path, shorter);
        EXPECT_FALSE(direct.contains("prompt_truncated"));
        EXPECT_EQ(api.answer(reply), api.answer(direct));
        EXPECT_EQ(api.prompt_tokens(reply), api.prompt_tokens(direct));
        const Json again = fixture.ask(api.path, body);
        EXPECT_EQ(again["prompt_truncated"], truncated) << "with all of it in the cache";
        EXPECT_EQ(api.answer(again), api.answer(reply));
        if (std::string(api.name) == "chat") expect_whole_pairs(messages, shorter["messages"]);
      }
    }
  }
}

TEST(Truncation, LogprobsAndTokensAreThoseOfTheShorterChatToTheBit) {
  StoryFixture& fixture = truncation_fixture();
  Json body = long_chat_body(long_chat(12));
  body.update({{"logprobs", true}, {"top_logprobs", 4}, {"return_token_ids", true}});
  const Json reply = fixture.ask(kChatApiPath, with_field(body, "truncation", "auto"));
  const Json direct =
      fixture.ask(kChatApiPath, without_dropped(body, "messages", reply["prompt_truncated"]));
  EXPECT_EQ(reply["prompt_token_ids"], direct["prompt_token_ids"]);
  EXPECT_EQ(reply["choices"][0]["logprobs"], direct["choices"][0]["logprobs"]);
  EXPECT_EQ(reply["usage"]["prompt_tokens_details"]["dropped_tokens"],
            reply["prompt_truncated"]["dropped_tokens"]);
  EXPECT_FALSE(direct["usage"]["prompt_tokens_details"].contains("dropped_tokens"));
  // What was dropped and what is left are the whole.
  const Json whole = fixture.ask("/tokenize", body);
  EXPECT_EQ(whole["count"].get<int>(), reply["usage"]["prompt_tokens"].get<int>() +
                                           reply["prompt_truncated"]["dropped_tokens"].get<int>());
}

TEST(Truncation, AutoDropsTheOldestAndMiddleKeepsTheFirstTurn) {
  StoryFixture& fixture = truncation_fixture();
  const Json body = long_chat_body(long_chat(12));
  const auto first_dropped = [&](Json truncation) {
    const Json reply =
        fixture.ask(kChatApiPath, with_field(body, "truncation", std::move(truncation)));
    return reply["prompt_truncated"]["dropped"][0]["from"];
  };
  EXPECT_EQ(first_dropped("auto"), "messages[1]") << "the system message stays";
  EXPECT_EQ(first_dropped({{"type", "auto"}}), "messages[1]");
  EXPECT_EQ(first_dropped("middle"), "messages[3]") << "and the first turn";
  for (const Json& off :
       {Json("disabled"), Json("none"), Json({{"type", "none"}}), Json(nullptr)}) {
    const Json error = refusal_of(fixture.post(kChatApiPath, with_field(body, "truncation", off)));
    EXPECT_EQ(error["code"], "context_length_exceeded") << off;
  }
}

TEST(Truncation, ToolsStay) {
  StoryFixture& fixture = truncation_fixture();
  Json body = with_field(long_chat_body(long_chat(12)), "tools", some_tools());
  body["return_token_ids"] = true;
  const Json reply = fixture.ask(kChatApiPath, with_field(body, "truncation", "auto"));
  const Json direct =
      fixture.ask(kChatApiPath, without_dropped(body, "messages", reply["prompt_truncated"]));
  EXPECT_EQ(reply["prompt_token_ids"], direct["prompt_token_ids"]);
  const Json text = fixture.ask("/detokenize", {{"tokens", reply["prompt_token_ids"]}})["prompt"];
  EXPECT_THAT(text.get<std::string>(), HasSubstr("tools: 1\n"));
}

TEST(Truncation, AStreamAndSeveralChoicesSayItOnce) {
  StoryFixture& fixture = truncation_fixture();
  Json body = with_field(long_chat_body(long_chat(12)), "truncation", "auto");
  body["n"] = 2;
  const Json whole = fixture.ask(kChatApiPath, body);
  ASSERT_EQ(whole["choices"].size(), 2u);
  ASSERT_TRUE(whole["prompt_truncated"].is_object());
  for (const bool with_usage : {false, true}) {
    if (with_usage) body["stream_options"] = {{"include_usage", true}};
    int told = 0;
    std::string text;
    for (const Json& event : fixture.stream(kChatApiPath, body)) {
      told += event.contains("prompt_truncated") ? 1 : 0;
      if (event.contains("prompt_truncated")) {
        EXPECT_EQ(event["prompt_truncated"], whole["prompt_truncated"]);
        EXPECT_EQ(event["truncated"], true);
      }
      for (const Json& choice : event["choices"]) {
        if (choice["index"] == 0) text += choice["delta"].value("content", "");
      }
    }
    EXPECT_EQ(told, 1);
    EXPECT_EQ(text, whole["choices"][0]["message"]["content"].get<std::string>());
  }
}

// The text of such a stream ends before the engine does.
TEST(Truncation, AStreamThatAStopStringEndsSaysItToo) {
  StoryFixture& fixture = truncation_fixture();
  Json body = with_field(long_chat_body(long_chat(12)), "truncation", "auto");
  body["max_tokens"] = 40;
  body["ignore_eos"] = true;
  const Json whole = fixture.ask(kChatApiPath, body);
  const auto text = whole["choices"][0]["message"]["content"].get<std::string>();
  ASSERT_GT(text.size(), 4u);
  body["stop"] = text.substr(2, 2);
  int told = 0;
  for (const Json& event : fixture.stream(kChatApiPath, body)) {
    told += event.contains("prompt_truncated") ? 1 : 0;
  }
  EXPECT_EQ(told, 1);
}

TEST(Truncation, APromptThatExactlyFitsKeepsAllOfIt) {
  StoryFixture& fixture = truncation_fixture();
  const std::uint64_t context = fixture.served().context_tokens();
  Json body = with_field(long_chat_body(long_chat(3)), "truncation", "auto");
  const std::uint64_t prompt =
      fixture.ask(kChatApiPath, body)["usage"]["prompt_tokens"].get<std::uint64_t>();
  ASSERT_LT(prompt, context);
  body["max_tokens"] = context - prompt;
  EXPECT_FALSE(fixture.ask(kChatApiPath, body).contains("prompt_truncated"));
  body["max_tokens"] = context - prompt + 1;
  const Json reply = fixture.ask(kChatApiPath, body);
  EXPECT_GT(reply["prompt_truncated"]["dropped_messages"], 0);
  EXPECT_EQ(reply["prompt_truncated"]["limit_tokens"], prompt - 1);
}

TEST(Truncation, WithoutALengthAnEighthOfTheContextStaysForTheOutput) {
  StoryFixture& fixture = truncation_fixture();
  const std::uint64_t context = fixture.served().context_tokens();
  Json body = with_field(long_chat_body(long_chat(12)), "truncation", "auto");
  body.erase("max_tokens");
  body["min_tokens"] = 1;
  const Json reply = fixture.ask(kChatApiPath, body);
  EXPECT_EQ(reply["prompt_truncated"]["limit_tokens"], context - context / 8);
  // Where nothing may go, less is left.
  const std::string words = repeated(" Tom and Lily.", 200);
  const Json one = Json::array({{{"role", "user"}, {"content", words}}});
  const std::uint64_t all =
      fixture.ask("/tokenize", {{"messages", one}})["count"].get<std::uint64_t>();
  const std::size_t fitting = words.size() * (context - 24) / all;
  body["messages"] = Json::array({{{"role", "user"}, {"content", words.substr(0, fitting)}}});
  const Json tight = fixture.ask(kChatApiPath, body);
  EXPECT_GT(tight["usage"]["prompt_tokens"], context - context / 8);
  EXPECT_FALSE(tight.contains("prompt_truncated"));
}

TEST(Truncation, WhatIsTooLongOnItsOwnIsRefusedByName) {
  StoryFixture& fixture = truncation_fixture();
  const std::string words = repeated(" Tom and Lily.", 400);
  Json last = long_chat(12);
  last.back()["content"] = words;
  Json system = long_chat(12);
  system.front()["content"] = words;
  for (const Json& messages : {last, system}) {
    for (const ChatApi& api : all_apis()) {
      Json body = api.body(messages);
      if (std::string(api.name) != "ollama") body["truncation"] = "auto";
      const HttpReply reply = fixture.post(api.path, body);
      EXPECT_EQ(reply.status, 400) << api.name;
      EXPECT_THAT(reply.body, HasSubstr(std::string(api.member) + ": what truncation keeps"))
          << api.name;
    }
    const Json error = refusal_of(
        fixture.post(kChatApiPath, with_field(long_chat_body(messages), "truncation", "auto")));
    EXPECT_EQ(error["code"], "context_length_exceeded");
    EXPECT_EQ(error["param"], "messages");
  }
  // An output that never fits is an error of its own.
  Json body = with_field(long_chat_body(long_chat(1)), "truncation", "auto");
  body["max_tokens"] = fixture.served().context_tokens();
  EXPECT_EQ(refusal_of(fixture.post(kChatApiPath, body))["param"], "max_tokens");
}

TEST(Truncation, ExplanationsNameItAndCountMessagesAsSent) {
  StoryFixture& fixture = truncation_fixture();
  Json body = with_field(long_chat_body(long_chat(12)), "truncation", "auto");
  const Json reply = fixture.ask(kChatApiPath, with_field(body, "cache_explain", true));
  EXPECT_EQ(reply["cache_explain"]["prompt_truncated"], reply["prompt_truncated"]);
  // The same but for its last message, which is the last of those that were sent.
  body["messages"].back()["content"] = "Tell me less.";
  const Json why = fixture.ask("/cache/explain", body);
  EXPECT_EQ(why["stopped_at"]["message"], body["messages"].size() - 1);
  EXPECT_EQ(why["prompt_truncated"]["dropped"], reply["prompt_truncated"]["dropped"]);
}

// A cut takes about a quarter of the context more than it must.
TEST(Truncation, MoreThanHalfOfTheRoomStaysInUse) {
  StoryFixture& fixture = truncation_fixture();
  for (int turns = 12; turns < 40; turns += 3) {
    const Json reply = fixture.ask(
        kChatApiPath, with_field(long_chat_body(long_chat(turns)), "truncation", "auto"));
    const auto limit = reply["prompt_truncated"]["limit_tokens"].get<std::uint64_t>();
    EXPECT_GT(reply["usage"]["prompt_tokens"], limit / 2) << turns;
  }
}

// A conversation that grows keeps its prefix for some turns, so that the cache serves it.
TEST(Truncation, AGrowingChatSharesItsPrefixForSomeTurns) {
  StoryFixture& fixture = truncation_fixture();
  Json messages = Json::array();
  int changes = 0;
  Json last;
  for (int turn = 0; turn < 44; ++turn) {
    messages.push_back({{"role", "user"}, {"content", "Tell me of Tom."}});
    if (turn >= 24) {  // beyond the context, so that every turn needs room
      const Json reply =
          fixture.ask(kChatApiPath, with_field(long_chat_body(messages), "truncation", "auto"));
      ASSERT_TRUE(reply.contains("prompt_truncated")) << turn;
      changes += reply["prompt_truncated"]["dropped"] != last ? 1 : 0;
      last = reply["prompt_truncated"]["dropped"];
    }
    messages.push_back({{"role", "assistant"}, {"content", "Tom has a dog."}});
  }
  EXPECT_GE(changes, 2);
  EXPECT_LE(changes, 10) << "of 20 turns";
}

TEST(Truncation, MarksAndPartsOfThePromptFollowTheirMessages) {
  StoryFixture& fixture = truncation_fixture();
  Json messages = long_chat(12);
  messages[2]["cache_control"] = {{"type", "ephemeral"}};  // of a message that goes
  messages[messages.size() - 2]["cache_control"] = {{"type", "ephemeral"}};
  const Json body = long_chat_body(messages);
  const Json reply = fixture.ask(kChatApiPath, with_field(body, "truncation", "auto"));
  const Json direct =
      fixture.ask(kChatApiPath, without_dropped(body, "messages", reply["prompt_truncated"]));
  ASSERT_TRUE(reply.contains("cache_retention")) << reply;
  ASSERT_EQ(reply["cache_retention"].size(), 1u) << reply["cache_retention"];
  EXPECT_EQ(reply["cache_retention"][0]["asked_tokens"],
            direct["cache_retention"][0]["asked_tokens"]);
}

TEST(Truncation, WrongFieldsAreRefusedByPath) {
  StoryFixture& fixture = truncation_fixture();
  struct Row {
    const char* member;
    Json value;
    const char* param;
  };
  const std::vector<Row> rows = {
      {"truncation", 1, "truncation"},
      {"truncation", true, "truncation"},
      {"truncation", Json::array({"auto"}), "truncation"},
      {"truncation", "", "truncation"},
      {"truncation", "AUTO", "truncation"},
      {"truncation", std::string(10'000, 'x'), "truncation"},
      {"truncation", Json::object(), "truncation.type"},
      {"truncation", {{"type", 3}}, "truncation.type"},
      {"truncation", {{"type", "last"}}, "truncation.type"},
      {"truncation", {{"type", "auto"}, {"keep", "tools"}}, "truncation.keep"},
      {"truncation", {{"type", "auto"}, {"keep", 1}}, "truncation.keep"},
      {"truncate_prompt_tokens", 0, "truncate_prompt_tokens"},
      {"truncate_prompt_tokens", -2, "truncate_prompt_tokens"},
      {"truncate_prompt_tokens", 1.5, "truncate_prompt_tokens"},
      {"truncate_prompt_tokens", "5", "truncate_prompt_tokens"},
      {"truncate_prompt_tokens", 1e300, "truncate_prompt_tokens"},
      {"truncate_prompt_tokens", INT32_MAX, "truncate_prompt_tokens"},
      {"truncate_prompt_tokens", INT64_MAX, "truncate_prompt_tokens"},
  };
  for (const Row& row : rows) {
    for (const ChatApi& api : all_apis()) {
      if (std::string(api.name) == "ollama") continue;
      const HttpReply reply =
          fixture.post(api.path, with_field(api.body(long_chat(1)), row.member, row.value));
      EXPECT_EQ(reply.status, 400) << api.name << row.value;
      EXPECT_THAT(reply.body, HasSubstr(std::string("\"") + row.param + ": "))
          << api.name << row.value;
      EXPECT_LT(reply.body.size(), 1000u);
    }
  }
  Json both = with_field(long_chat_body(long_chat(1)), "truncation", "auto");
  both["truncate_prompt_tokens"] = 5;
  EXPECT_EQ(refusal_of(fixture.post(kChatApiPath, both))["param"], "truncate_prompt_tokens");
  EXPECT_THAT(
      fixture.post("/api/chat", with_field(long_ollama_body(long_chat(1)), "truncate", 3)).body,
      HasSubstr("truncate: "));
}

// Searching takes several renderings, for which a connection's thread has no time.
TEST(Truncation, IsWorkForATextWorker) {
  StoryFixture& fixture = truncation_fixture();
  ReadingMemory memory(nullptr);
  const ReadingTerms hurried = {.memory = memory, .may_take_long = false};
  const auto read = [&](int turns) {
    return read_chat_request(with_field(long_chat_body(long_chat(turns)), "truncation", "auto"),
                             fixture.served(), hurried);
  };
  EXPECT_EQ(read(1).prompts.size(), 1u);
  EXPECT_THROW(read(12), TakesLong);
}

// An attempt copies the messages that stay: what has no text takes memory, too.
TEST(Truncation, CopiesOfMessagesAreCounted) {
  Json body = long_chat_body(long_chat(12));
  body["messages"].back()["values"] = std::vector<Json>(20'000, Json::array());
  const auto held_by = [](const Json& read) {
    ByteBudget budget(std::uint64_t{1} << 30);
    ReadingMemory memory(&budget);
    const ReadingTerms terms = {.memory = memory};
    const CompletionRequest request = read_chat_request(read, truncation_fixture().served(), terms);
    EXPECT_EQ(request.prompts.front().truncated.has_value(), read.contains("truncation"));
    return budget.bytes_held();
  };
  const std::uint64_t truncated = held_by(with_field(body, "truncation", "auto"));
  Json last = body;
  last["messages"] = Json::array({body["messages"].back()});
  EXPECT_GE(truncated, held_by(last) + 20'000 * (sizeof(Json) + sizeof(Json::array_t)));
}

TEST(TruncatePromptTokens, KeepsTheLastTokens) {
  StoryFixture& fixture = truncation_fixture();
  const Json ids = fixture.ask("/tokenize", {{"prompt", repeated(" Tom and Lily.", 20)}})["tokens"];
  const auto complete = [&](const Json& prompt, Json more) {
    Json body = {{"prompt", prompt}, {"max_tokens", 6}, {"temperature", 0}, {"logprobs", 1}};
    body.update(more);
    return fixture.complete(body);
  };
  const Json reply = complete(ids, {{"truncate_prompt_tokens", 9}, {"echo", true}});
  const Json last(std::vector<Json>(ids.end() - 9, ids.end()));
  const Json direct = complete(last, {{"echo", true}});
  EXPECT_EQ(reply["choices"][0]["text"], direct["choices"][0]["text"]);
  EXPECT_EQ(reply["choices"][0]["logprobs"], direct["choices"][0]["logprobs"]);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 9);
  EXPECT_EQ(reply["truncated"], true);
  const Json expected = {
      {"type", "tokens"}, {"limit_tokens", 9}, {"dropped_tokens", ids.size() - 9}};
  EXPECT_EQ(reply["prompt_truncated"], expected);
  EXPECT_EQ(reply["usage"]["prompt_tokens_details"]["dropped_tokens"], ids.size() - 9);
  EXPECT_FALSE(complete(ids, {{"truncate_prompt_tokens", ids.size()}}).contains("truncated"));
  // A BOS that the tokenizer adds stays in front.
  const Json text = complete(repeated(" Tom and Lily.", 20), {{"truncate_prompt_tokens", 9}});
  Json with_bos(std::vector<Json>(ids.end() - 8, ids.end()));
  with_bos.insert(with_bos.begin(), ids.front());
  EXPECT_EQ(text["choices"][0]["logprobs"],
            complete(with_bos, Json::object())["choices"][0]["logprobs"]);
}

TEST(TruncatePromptTokens, OfABatchEachPromptIsCutAlone) {
  StoryFixture& fixture = truncation_fixture();
  const Json reply = fixture.complete(
      {{"prompt", {{9, 8, 7, 6}, {5, 4}}}, {"max_tokens", 1}, {"truncate_prompt_tokens", 3}});
  ASSERT_EQ(reply["prompt_truncated"].size(), 2u);
  EXPECT_EQ(reply["prompt_truncated"][0]["dropped_tokens"], 1);
  EXPECT_EQ(reply["prompt_truncated"][1], nullptr);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 5);
}

TEST(TruncatePromptTokens, MinusOneIsWhatTheOutputLeaves) {
  StoryFixture& fixture = truncation_fixture();
  const std::uint64_t context = fixture.served().context_tokens();
  const std::string words = repeated(" Tom and Lily.", 400);
  const auto prompt_tokens = [&](const char* path, Json body) {
    body.update({{"truncate_prompt_tokens", -1}, {"min_tokens", 1}});
    return fixture.ask(path, body)["usage"]["prompt_tokens"].get<std::uint64_t>();
  };
  const Json messages = Json::array({{{"role", "user"}, {"content", words}}});
  EXPECT_EQ(prompt_tokens(kCompletionsPath, {{"prompt", words}}), context - 16);
  EXPECT_EQ(prompt_tokens(kCompletionsPath, {{"prompt", words}, {"max_tokens", 5}}), context - 5);
  EXPECT_EQ(prompt_tokens(kChatApiPath, {{"messages", messages}, {"max_tokens", 5}}), context - 5);
  EXPECT_EQ(prompt_tokens(kChatApiPath, {{"messages", messages}}), context - context / 8);
  const auto asked = [&](std::uint64_t tokens) {
    return fixture.post(kCompletionsPath,
                        {{"prompt", words}, {"max_tokens", 5}, {"truncate_prompt_tokens", tokens}});
  };
  EXPECT_EQ(asked(context - 5).status, 200);
  EXPECT_EQ(refusal_of(asked(context - 4))["code"], "context_length_exceeded");
}

TEST(TruncatePromptTokens, OfAChatAreTheLastOfItsRenderedPrompt) {
  StoryFixture& fixture = truncation_fixture();
  const Json body = long_chat_body(long_chat(2));
  const Json rendered = fixture.ask("/v1/chat/completions/render", body);
  const Json reply = fixture.ask(
      kChatApiPath,
      with_field(with_field(body, "truncate_prompt_tokens", 40), "return_token_ids", true));
  const Json& ids = rendered["token_ids"];
  EXPECT_EQ(reply["prompt_token_ids"], Json(std::vector<Json>(ids.end() - 40, ids.end())));
  EXPECT_EQ(reply["prompt_truncated"]["dropped_tokens"], ids.size() - 40);
  const Json why = fixture.ask("/cache/explain", with_field(body, "truncate_prompt_tokens", 30));
  EXPECT_EQ(why["prompt_tokens"], 30);
}

}  // namespace
}  // namespace pagoda::server
