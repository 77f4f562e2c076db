// Sessions through the API: conversations of one key lose nothing to each other, what a turn leaves
// behind is evicted first, and no tenant reaches the sessions of another.
#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "server/tenants_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kChatsPath = "/v1/chat/completions";
constexpr const char* kParkStory =
    "Once upon a time there was a little girl named Lily who loved to play outside in the park "
    "with her friend Tom every single day";

// A chat of a system prompt, then texts of the user and the assistant in turns. Nothing is
// answered, so that the cache holds prompts alone.
Json keyed_chat(const std::vector<std::string>& texts, const char* key = "agent") {
  Json messages = Json::array({{{"role", "system"}, {"content", kParkStory}}});
  for (std::size_t i = 0; i < texts.size(); ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", texts[i]}});
  }
  Json body = {{"messages", messages}, {"max_tokens", 0}, {"temperature", 0}};
  if (key != nullptr) body["prompt_cache_key"] = key;
  return body;
}

// Turn `turn` of a conversation that begins like all others and then has words of its own.
Json turn_of(const std::string& words, int turn) {
  std::vector<std::string> texts = {"Who is Tom?"};
  for (int i = 0; i < turn; ++i) {
    texts.push_back(words + " ran to the park " + std::to_string(i));
    texts.push_back("And then, " + words + "?");
  }
  return keyed_chat(texts);
}

template <class Read>
auto read_cache(engine::Engine& engine, Read read) {
  std::promise<decltype(read(std::declval<kv::Cache&>()))> value;
  engine.post([&](kv::Cache& cache) { value.set_value(read(cache)); });
  return value.get_future().get();
}

std::uint64_t sessions_open(StoryFixture& fixture) {
  return read_cache(fixture.engine(), [](kv::Cache& cache) { return cache.sessions().sessions(); });
}

std::uint64_t superseded(StoryFixture& fixture) {
  return read_cache(fixture.engine(),
                    [](kv::Cache& cache) { return cache.sessions().nodes_superseded(); });
}

std::uint64_t evicted_by_sessions(StoryFixture& fixture) {
  return read_cache(fixture.engine(), [](kv::Cache& cache) {
    const auto cause = static_cast<std::size_t>(kv::EvictionCause::kSuperseded);
    return cache.stats().blocks_evicted_by_cause[cause];
  });
}

// Prompts of no session, until nothing in the cache is free.
void fill_cache(StoryFixture& fixture) {
  for (int i = 0; fixture.engine().snapshot().blocks_free > 0; ++i) {
    ASSERT_LT(i, 200) << "the cache does not fill";
    const std::string text = std::to_string(i) + " cats. " + repeated("The sun was warm. ", 60);
    fixture.complete({{"prompt", text}, {"max_tokens", 1}});
  }
}

// A user's key on a task that is begun twice: the second shares the system prompt, the question and
// all that the template writes behind it.
TEST(Sessions, ConversationsOfOneKeyThatBeginAlikeLoseNothing) {
  StoryFixture fixture;
  for (int turn = 0; turn < 4; ++turn) fixture.ask(kChatsPath, turn_of("Anna", turn));
  ASSERT_EQ(superseded(fixture), 0u) << "one conversation that only grows";
  for (int turn = 0; turn < 4; ++turn) {
    fixture.ask(kChatsPath, turn_of("Bob", turn));
    EXPECT_EQ(superseded(fixture), 0u) << "at Bob's turn " << turn;
    fixture.ask(kChatsPath, turn_of("Anna", 4 + turn));
    EXPECT_EQ(superseded(fixture), 0u) << "at Anna's turn " << 4 + turn;
  }
  // The first question asked again, and an answer to it that is new, are conversations, too.
  fixture.ask(kChatsPath, turn_of("Anna", 0));
  fixture.ask(kChatsPath, turn_of("Carl", 1));
  EXPECT_EQ(superseded(fixture), 0u);
  Json edited = turn_of("Anna", 7);
  edited["messages"][4]["content"] = "Anna did not run.";
  fixture.ask(kChatsPath, edited);
  EXPECT_GT(superseded(fixture), 0u) << "behind the first turn it is the same conversation";
}

TEST(Sessions, WhatATurnLeavesBehindIsEvictedFirstAndAnswersStay) {
  StoryFixture with;
  StoryFixture without;
  for (StoryFixture* const fixture : {&with, &without}) fill_cache(*fixture);
  const std::string reminder = std::string(" (") + kParkStory + ")";
  for (int turn = 0; turn < 8; ++turn) {
    std::vector<std::string> texts = {"Who is Tom?", "A boy."};
    for (int i = 0; i < turn; ++i) {
      texts.push_back("And then " + std::to_string(i));
      texts.push_back("They played.");
    }
    texts.push_back("Go on." + std::to_string(turn) + reminder);
    Json body = keyed_chat(texts, nullptr);
    body["max_tokens"] = 4;
    const Json plain = without.ask(kChatsPath, body);
    body["prompt_cache_key"] = "agent";
    const Json answer = with.ask(kChatsPath, body);
    EXPECT_EQ(answer["choices"][0]["message"], plain["choices"][0]["message"]);
  }
  EXPECT_EQ(evicted_by_sessions(without), 0u);
  EXPECT_GE(evicted_by_sessions(with), 6u) << "a reminder has more than a block";
}

class TenantSessions : public TenantsFixture {
 protected:
  TenantSessions()
      : TenantsFixture(
            "tenant anna\ntenant bert\n"
            "key anna-key anna\nkey anna-other anna\nkey bert-key bert\n") {}

  int cached(const std::string& key, const Json& body) {
    return ask(key, "/cache/explain", body)["matched_tokens"];
  }
};

TEST_F(TenantSessions, OfOneNameAreTwo) {
  for (int turn = 0; turn < 4; ++turn) ask("anna-key", kChatsPath, turn_of("Anna", turn));
  const int prompt = cached("anna-key", turn_of("Anna", 3));
  ASSERT_GT(prompt, 64);
  const Json named = {{"session", "agent"}};
  for (const char* const path : {"/cache/session/close", "/cache/demote", "/cache/prefetch"}) {
    EXPECT_EQ(post("bert-key", path, named).status, 404) << path;
  }
  // The same words of another tenant are other blocks, though they edit the conversation.
  Json edited = turn_of("Anna", 3);
  edited["messages"][4]["content"] = "Anna did not run.";
  ask("bert-key", kChatsPath, edited);
  EXPECT_EQ(superseded(fixture_), 0u);
  EXPECT_EQ(sessions_open(fixture_), 2u);
  const Json demoted = ask("bert-key", "/cache/demote", turn_of("Anna", 3));
  const int bert = cached("bert-key", edited);
  EXPECT_LE(demoted["blocks_demoted"], (bert + 15) / 16) << "no block but its own";
  EXPECT_EQ(cached("anna-key", turn_of("Anna", 3)), prompt);

  EXPECT_EQ(ask("bert-key", "/cache/session/close", named)["closed"], true);
  EXPECT_EQ(sessions_open(fixture_), 1u);
  EXPECT_EQ(ask("anna-other", "/cache/prefetch", named)["prompt_tokens"], prompt + 1)
      << "keys of one tenant share its sessions";
  EXPECT_EQ(ask("anna-other", "/cache/session/close", named)["closed"], true);
  EXPECT_EQ(sessions_open(fixture_), 0u);
}

}  // namespace
}  // namespace pagoda::server
