#include "loadgen/agents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace pagoda::loadgen {
namespace {

using Json = nlohmann::json;

Json messages_of(const PlannedRequest& planned) {
  const std::string member = prompt_member(planned.prompt, PromptForm::kMessages, {});
  return Json::parse("{" + member + "}")["messages"];
}

std::size_t words(const Json& message) {
  const std::string text = message["content"];
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
}

TEST(AgentsTest, EachHasAPromptOfItsOwnAndLeavesItsLastNoteOut) {
  const AgentsOptions options = {.main_tokens = 50,
                                 .sub_tokens = 20,
                                 .sub_agents = 2,
                                 .turns = 3,
                                 .result_tokens = 5,
                                 .note_tokens = 7,
                                 .output_tokens = 4};
  const auto agents = make_agents(options);
  EXPECT_EQ(agents->count(), 9U);
  std::vector<PlannedRequest> first;
  while (auto planned = agents->next()) first.push_back(std::move(*planned));
  ASSERT_EQ(first.size(), 3U);
  EXPECT_NE(first[1].session, first[2].session);
  EXPECT_EQ(words(messages_of(first[0])[0]), 50U);
  EXPECT_EQ(words(messages_of(first[2])[0]), 20U);
  EXPECT_NE(messages_of(first[1])[0], messages_of(first[2])[0]);

  PlannedRequest planned = first[0];
  for (std::uint32_t turn = 1; turn <= 3; ++turn) {
    const Json now = messages_of(planned);
    ASSERT_EQ(now.size(), 2 * turn);
    EXPECT_EQ(planned.turn, turn);
    EXPECT_EQ(now[0]["role"], "system");
    EXPECT_EQ(words(now.back()), 12U) << "a result and a note";
    for (std::size_t i = 1; i + 1 < now.size(); i += 2) EXPECT_EQ(words(now[i]), 5U);
    const auto next = agents->follow(planned, "an answer", 1000);
    ASSERT_EQ(next.has_value(), turn < 3);
    if (!next) break;
    const Json then = messages_of(*next);
    EXPECT_EQ(then[0], now[0]);
    EXPECT_EQ(then[2 * turn]["content"], "an answer");
    EXPECT_GE(next->scheduled_ns, 1000);
    planned = *next;
  }
}

TEST(AgentsTest, OneByOneTheyAskInAnOrderOfTheSeedAlone) {
  const auto order = [](std::uint64_t seed, const std::string& answer, std::int64_t now_ns) {
    const auto agents = make_agents({.main_tokens = 5,
                                     .sub_tokens = 3,
                                     .sub_agents = 2,
                                     .turns = 6,
                                     .seed = seed,
                                     .one_by_one = true});
    std::vector<std::pair<std::uint32_t, std::uint32_t>> asked;  // (agent, turn)
    for (auto planned = agents->next(); planned;
         planned = agents->follow(*planned, answer, now_ns)) {
      EXPECT_FALSE(agents->next().has_value()) << "one request at a time";
      EXPECT_EQ(messages_of(*planned).size(), 2 * planned->turn);
      asked.emplace_back(planned->user, planned->turn);
    }
    return asked;
  };
  const auto first = order(1, "yes", 5);
  EXPECT_EQ(first.size(), 18U);
  for (std::uint32_t agent = 0; agent < 3; ++agent) {
    std::uint32_t turn = 0;
    for (const auto& [user, its_turn] : first) {
      if (user != agent) continue;
      EXPECT_EQ(its_turn, ++turn);
    }
    EXPECT_EQ(turn, 6U);
  }
  EXPECT_EQ(order(1, "another answer", 900), first);
  EXPECT_NE(order(2, "yes", 5), first);
}

TEST(AgentsTest, SessionsAreSentWhereTheyAreAskedFor) {
  const auto agents = make_agents({.main_tokens = 3});
  const auto planned = agents->next();
  const Target target = parse_target("http://127.0.0.1:1", "URL").value();
  const auto request = [&](bool sends) {
    return completion_request(
        target, {.chat = true, .prompts = PromptForm::kMessages, .sends_sessions = sends},
        *planned);
  };
  EXPECT_NE(request(true).find("\"prompt_cache_key\":\"agent-0-0\""), std::string::npos);
  EXPECT_EQ(request(false).find("prompt_cache_key"), std::string::npos);
}

Outcome turn_of_agent(std::uint32_t turn, std::uint64_t prompt, std::uint64_t cached) {
  Outcome outcome = {.sent_ns = 1'000'000'000, .first_ns = 1'000'000'000 + turn * 100'000'000};
  outcome.turn = turn;
  outcome.kind = OutcomeKind::kAnswered;
  outcome.prompt_tokens = prompt;
  outcome.cached_tokens = cached;
  return outcome;
}

// A server that fails its slow turns must not look faster than one that answers them.
TEST(AgentsTest, TurnsThatFailAreSlowerThanAllOthers) {
  const float infinity = std::numeric_limits<float>::infinity();
  AgentsMeasurement measured;
  measured.options = {.sub_agents = 0, .turns = 8};
  for (std::uint32_t turn = 1; turn <= 5; ++turn) {
    measured.load.outcomes.push_back(turn_of_agent(turn, 100, 90));
  }
  Outcome failed = turn_of_agent(6, 0, 0);
  failed.kind = OutcomeKind::kStatus;
  failed.first_ns = 0;
  measured.load.outcomes.push_back(failed);
  EXPECT_EQ(measured.ttft_from(4), (std::vector<float>{0.4f, 0.5f, infinity, infinity, infinity}))
      << "one that failed, and two that were never asked";
  EXPECT_EQ(measured.turns_failed(), 3U);
  EXPECT_EQ(measured.tokens_computed(), 50U) << "of those that were answered";
}

TEST(AgentsTest, WhatIsComputedAgainIsApartFromWhatIsNew) {
  AgentsMeasurement measured;
  measured.options = {.sub_agents = 0, .turns = 4, .note_tokens = 30};
  measured.load.outcomes = {turn_of_agent(1, 1000, 0), turn_of_agent(2, 1050, 970),
                            turn_of_agent(3, 1100, 400), turn_of_agent(4, 1150, 1090)};
  EXPECT_EQ(measured.tokens_computed(), 1000U + 80 + 700 + 60);
  // Turns grow by 50 and have a note of 30, and a template writes up to 16 tokens behind it: the
  // second turn and the last compute no more than that.
  EXPECT_EQ(measured.tokens_computed_again(), 700U - 96);
  measured.load.outcomes[1].cached_tokens.reset();
  EXPECT_FALSE(measured.tokens_computed().has_value()) << "the server does not say";
  EXPECT_FALSE(measured.tokens_computed_again().has_value());
}

TEST(AgentsTest, AFailureIsSaidInTheWordsOfTheServer) {
  EXPECT_EQ(failure_words("HTTP 500: {\"error\":{\"code\":500,\"message\":\"Context size has been "
                          "exceeded.\",\"type\":\"server_error\"}}"),
            "Context size has been exceeded.");
  EXPECT_EQ(failure_words("HTTP 502: <html>"), "HTTP 502: <html>");
  EXPECT_EQ(failure_words("{\"error\": {\"message\": 3}"), "{\"error\": {\"message\": 3}");
  EXPECT_EQ(failure_words(std::string(59, 'x') + "éy"), std::string(59, 'x') + "…")
      << "characters are whole";
}

TEST(AgentsTest, EvictionsAreReadFromPagodasMetrics) {
  const auto read = read_evicted_blocks(
      "# TYPE pagoda:kv_blocks_evicted_total counter\n"
      "pagoda:kv_blocks_evicted_total{policy=\"lru\",cause=\"room\"} 40\n"
      "pagoda:kv_blocks_evicted_total{policy=\"lru\",cause=\"session\"} 7\n"
      "pagoda:kv_sessions 3\n");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->all, 47U);
  EXPECT_EQ(read->by_sessions, 7U);
  EXPECT_FALSE(read_evicted_blocks("llamacpp:prompt_tokens_total 3\n").has_value());
}

}  // namespace
}  // namespace pagoda::loadgen
