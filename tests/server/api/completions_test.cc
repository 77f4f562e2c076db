// Text completions through the API, over a real engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/single_sequence.h"
#include "server/retry_after.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kOncePrompt = "Once upon a time";

StoryFixture& completions_fixture() {
  static StoryFixture fixture;
  return fixture;
}

Json greedy(Json more = Json::object()) {
  Json body = {{"prompt", kOncePrompt}, {"temperature", 0}, {"max_tokens", 24}};
  body.update(more);
  return body;
}

std::string text_of(const Json& reply) { return reply["choices"][0]["text"]; }

TEST(Completions, TheStoryIsTheOneThatIsKnown) {
  // llama2.c's own program generates this text with the model at temperature 0.
  EXPECT_THAT(text_of(completions_fixture().complete(greedy())),
              testing::StartsWith(", there was a little girl named Lily."));
}

TEST(Completions, ARepeatedPromptIsCachedButForItsLastToken) {
  const Json body = greedy({{"prompt", "The cat sat on a warm red mat and looked at the sun"}});
  const Json first = completions_fixture().complete(body);
  EXPECT_LE(first["usage"]["prompt_tokens_details"]["cached_tokens"], 2) << "BOS, perhaps 'The'";
  const Json second = completions_fixture().complete(body);
  const Json usage = second["usage"];
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"].get<int>() - 1);
  EXPECT_EQ(text_of(second), text_of(first));
}

TEST(Completions, ASaltKeepsTheCacheApart) {
  const auto cached = [&](const Json& body) {
    return completions_fixture()
        .complete(body)["usage"]["prompt_tokens_details"]["cached_tokens"]
        .get<int>();
  };
  const Json mine = greedy({{"prompt", "My secret is big"}, {"cache_salt", "mine"}});
  Json yours = mine;
  yours["cache_salt"] = "yours";
  Json everyones = mine;
  everyones.erase("cache_salt");
  completions_fixture().send({.method = "POST", .path = "/reset_prefix_cache"});
  EXPECT_EQ(cached(mine), 0);
  EXPECT_GT(cached(mine), 1);
  EXPECT_EQ(cached(yours), 0);
  EXPECT_EQ(cached(everyones), 0);
}

TEST(Completions, AResetForgetsThePrefixes) {
  completions_fixture().complete(greedy());
  completions_fixture().send({.method = "POST", .path = "/reset_prefix_cache"});
  const Json after = completions_fixture().complete(greedy());
  EXPECT_EQ(after["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST(Completions, TokenIdsAndTheirTextGiveTheSame) {
  const Json tokens = completions_fixture().ask("/tokenize", {{"prompt", kOncePrompt}});
  const Json by_text = completions_fixture().complete(greedy({{"return_token_ids", true}}));
  EXPECT_EQ(by_text["choices"][0]["prompt_token_ids"], tokens["tokens"]);
  const Json by_ids = completions_fixture().complete(greedy({{"prompt", tokens["tokens"]}}));
  EXPECT_EQ(text_of(by_ids), text_of(by_text));
  EXPECT_EQ(by_ids["usage"]["prompt_tokens"], tokens["count"]);
  EXPECT_EQ(by_text["choices"][0]["token_ids"].size(), 24u);
}

TEST(Completions, ABatchAnswersEachPromptAsIfAlone) {
  const std::vector<std::string> prompts = {"Once upon a time", "Tom had a red car", "The dog"};
  const Json batch = completions_fixture().complete(
      greedy({{"prompt", prompts}, {"n", 2}, {"temperature", 0.8}, {"seed", 3}}));
  ASSERT_EQ(batch["choices"].size(), 6u);
  std::int64_t prompt_tokens = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Json alone = completions_fixture().complete(
        greedy({{"prompt", prompts[i]}, {"n", 2}, {"temperature", 0.8}, {"seed", 3}}));
    prompt_tokens += alone["usage"]["prompt_tokens"].get<std::int64_t>();
    for (std::size_t answer = 0; answer < 2; ++answer) {
      const Json& choice = batch["choices"][i * 2 + answer];
      EXPECT_EQ(choice["index"], i * 2 + answer);
      EXPECT_EQ(choice["text"], alone["choices"][answer]["text"]);
    }
  }
  EXPECT_EQ(batch["usage"]["prompt_tokens"], prompt_tokens);
}

TEST(Completions, SeedsRepeatAndAreReported) {
  const Json drawn = completions_fixture().complete(greedy({{"temperature", 1.0}}));
  const Json seed = drawn["choices"][0]["seed"];
  EXPECT_LT(seed.get<std::uint64_t>(), std::uint64_t{1} << 53);
  const Json again = completions_fixture().complete(greedy({{"temperature", 1.0}, {"seed", seed}}));
  EXPECT_EQ(text_of(again), text_of(drawn));
  const Json other = completions_fixture().complete(
      greedy({{"temperature", 1.0}, {"seed", seed.get<std::uint64_t>() + 1}}));
  EXPECT_NE(text_of(other), text_of(drawn));
}

TEST(Completions, AStreamSaysWhatTheWholeReplySays) {
  const Json body = greedy({{"logprobs", 2}, {"return_token_ids", true}});
  const Json whole = completions_fixture().complete(body);
  Json streamed = body;
  streamed["stream_options"] = {{"include_usage", true}};
  const std::vector<Json> events = completions_fixture().stream(kCompletionsPath, streamed);
  ASSERT_EQ(events.size(), 24u + 1u) << "one chunk a token, and the usage";
  std::string text;
  Json ids = Json::array();
  Json logprobs = Json::array();
  Json offsets = Json::array();
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const Json& choice = events[i]["choices"][0];
    text += choice["text"].get<std::string>();
    for (const Json& id : choice["token_ids"]) ids.push_back(id);
    for (const Json& logprob : choice["logprobs"]["token_logprobs"]) logprobs.push_back(logprob);
    for (const Json& offset : choice["logprobs"]["text_offset"]) offsets.push_back(offset);
    EXPECT_TRUE(events[i]["usage"].is_null());
    EXPECT_EQ(choice["finish_reason"], i == 23 ? Json("length") : Json(nullptr));
  }
  const Json& choice = whole["choices"][0];
  EXPECT_EQ(choice["text"], text);
  EXPECT_EQ(ids, choice["token_ids"]);
  EXPECT_EQ(logprobs, choice["logprobs"]["token_logprobs"]);
  EXPECT_EQ(offsets, choice["logprobs"]["text_offset"]);
  EXPECT_EQ(events.front()["choices"][0]["prompt_token_ids"], choice["prompt_token_ids"]);
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 24);
}

TEST(Completions, AStopStringNeverLeaksWhereverItEnds) {
  const std::string full = text_of(completions_fixture().complete(greedy()));
  for (std::size_t begin = 1; begin + 3 < full.size(); begin += 5) {
    const std::string stop = full.substr(begin, 3);
    const std::size_t first = full.find(stop);
    const Json whole = completions_fixture().complete(greedy({{"stop", stop}}));
    EXPECT_EQ(text_of(whole), full.substr(0, first)) << stop;
    EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(whole["choices"][0]["stop_reason"], stop);
    std::string streamed;
    for (const Json& event :
         completions_fixture().stream(kCompletionsPath, greedy({{"stop", stop}}))) {
      streamed += event["choices"][0]["text"].get<std::string>();
      EXPECT_EQ(full.substr(0, first).substr(0, streamed.size()), streamed);
    }
    EXPECT_EQ(streamed, full.substr(0, first)) << stop;
  }
}

// Usage, ids and log-probabilities end with the token that completed the stop string.
TEST(Completions, AtAStopTheFiguresAreThoseOfTheMatch) {
  const Json full =
      completions_fixture().complete(greedy({{"return_token_ids", true}, {"logprobs", 0}}));
  const std::string text = text_of(full);
  const std::string stop = text.substr(8, 4);
  std::string so_far;
  std::size_t tokens = 0;
  while (so_far.find(stop) == std::string::npos) {
    so_far += full["choices"][0]["logprobs"]["tokens"][tokens++].get<std::string>();
  }
  const Json stopped = completions_fixture().complete(
      greedy({{"stop", {"zzz", stop}}, {"return_token_ids", true}, {"logprobs", 0}, {"n", 2}}));
  EXPECT_EQ(stopped["usage"]["completion_tokens"], 2 * tokens);
  for (const Json& choice : stopped["choices"]) {
    EXPECT_EQ(choice["token_ids"].size(), tokens);
    EXPECT_EQ(choice["logprobs"]["tokens"].size(), tokens);
    EXPECT_EQ(choice["stop_reason"], stop);
  }
  const Json with_stop = completions_fixture().complete(
      greedy({{"stop", stop}, {"include_stop_str_in_output", true}}));
  EXPECT_EQ(text_of(with_stop), text.substr(0, text.find(stop) + stop.size()));
}

TEST(Completions, TheFirstMinTokensAreNoPartOfAStop) {
  const Json full = completions_fixture().complete(greedy({{"logprobs", 0}}));
  const std::string first = full["choices"][0]["logprobs"]["tokens"][0];
  const Json stopped = completions_fixture().complete(greedy({{"stop", first}, {"min_tokens", 2}}));
  EXPECT_GT(stopped["usage"]["completion_tokens"], 2);
  EXPECT_THAT(text_of(stopped), testing::StartsWith(first));
}

TEST(Completions, AStopTokenEndsTheAnswerAndIsCounted) {
  const Json full = completions_fixture().complete(greedy({{"return_token_ids", true}}));
  const Json id = full["choices"][0]["token_ids"][5];
  const Json stopped = completions_fixture().complete(greedy({{"stop_token_ids", {id}}}));
  EXPECT_EQ(stopped["choices"][0]["stop_reason"], id);
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
  EXPECT_LE(stopped["usage"]["completion_tokens"], 6);
  EXPECT_THAT(text_of(full), testing::StartsWith(text_of(stopped)));
}

TEST(Completions, AnEchoBeginsWithThePromptAndItsScores) {
  const Json plain = completions_fixture().complete(greedy({{"logprobs", 1}}));
  const Json echo = completions_fixture().complete(greedy({{"echo", true}, {"logprobs", 1}}));
  EXPECT_EQ(text_of(echo), kOncePrompt + text_of(plain));
  const Json& logprobs = echo["choices"][0]["logprobs"]["token_logprobs"];
  const std::size_t prompt = echo["usage"]["prompt_tokens"];
  ASSERT_EQ(logprobs.size(), prompt + 24);
  EXPECT_TRUE(logprobs[0].is_null());
  EXPECT_LE(logprobs[1].get<double>(), 0);
  const Json tail(
      Json::array_t(logprobs.begin() + static_cast<std::ptrdiff_t>(prompt), logprobs.end()));
  EXPECT_EQ(tail, plain["choices"][0]["logprobs"]["token_logprobs"]);
  std::string streamed;
  for (const Json& event :
       completions_fixture().stream(kCompletionsPath, greedy({{"echo", true}, {"logprobs", 1}}))) {
    streamed += event["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(streamed, text_of(echo));
}

TEST(Completions, AnEchoMayHaveNoAnswerAtAll) {
  const Json scored =
      completions_fixture().complete(greedy({{"echo", true}, {"logprobs", 1}, {"max_tokens", 0}}));
  EXPECT_EQ(text_of(scored), kOncePrompt);
  EXPECT_EQ(scored["usage"]["completion_tokens"], 0);
  EXPECT_EQ(scored["choices"][0]["logprobs"]["tokens"].size(), scored["usage"]["prompt_tokens"]);
}

TEST(Completions, LogprobsAreOrderedAndHoldTheChosen) {
  const Json reply =
      completions_fixture().complete(greedy({{"temperature", 1.0}, {"seed", 5}, {"logprobs", 3}}));
  const Json& logprobs = reply["choices"][0]["logprobs"];
  for (std::size_t i = 0; i < 24; ++i) {
    const Json& top = logprobs["top_logprobs"][i];
    EXPECT_GE(top.size(), 3u);
    EXPECT_LE(top.size(), 4u);
    const std::string token = logprobs["tokens"][i];
    ASSERT_TRUE(top.contains(token)) << top;
    EXPECT_EQ(top[token], logprobs["token_logprobs"][i]);
    double sum = 0;
    for (const auto& [name, logprob] : top.items()) sum += std::exp(logprob.get<double>());
    EXPECT_LE(sum, 1.0001);
  }
}

TEST(Completions, PromptLogprobsComeAsVllmPutsThem) {
  const Json reply = completions_fixture().complete(greedy({{"prompt_logprobs", 2}}));
  const Json& scores = reply["choices"][0]["prompt_logprobs"];
  ASSERT_EQ(scores.size(), reply["usage"]["prompt_tokens"].get<std::size_t>());
  EXPECT_TRUE(scores[0].is_null());
  for (std::size_t i = 1; i < scores.size(); ++i) {
    EXPECT_GE(scores[i].size(), 2u);
    EXPECT_TRUE(scores[i].front().contains("rank")) << scores[i];
  }
}

TEST(Completions, WithoutALengthSixteenTokensCome) {
  EXPECT_EQ(completions_fixture().complete(
                {{"prompt", kOncePrompt}, {"ignore_eos", true}})["usage"]["completion_tokens"],
            16);
}

TEST(Completions, TokensOfAPromptAreAttributed) {
  const Json usage = completions_fixture().complete(greedy())["usage"];
  const Json by_source = usage["prompt_tokens_details"]["by_source"];
  EXPECT_EQ(by_source["template"]["tokens"], 1) << "BOS";
  EXPECT_EQ(by_source["user"]["tokens"], usage["prompt_tokens"].get<int>() - 1);
}

TEST(Completions, TooManyWaitingIsToldToComeBack) {
  StoryFixture narrow(1);
  const std::vector<std::string> prompts(60, kOncePrompt);
  const HttpReply reply = narrow.post(kCompletionsPath, greedy({{"prompt", prompts}}));
  EXPECT_EQ(reply.status, 429) << reply.body;
  EXPECT_TRUE(lacks_retry_after(reply)) << "the connection adds it";
  EXPECT_EQ(narrow.post(kCompletionsPath, greedy()).status, 200) << "others are undisturbed";
}

TEST(Completions, WhatNobodyWaitsForIsCancelled) {
  Routed routed = route({.method = "POST",
                         .path = kCompletionsPath,
                         .content_type = "application/json",
                         .body = greedy({{"max_tokens", 400}, {"ignore_eos", true}}).dump(),
                         .caller = identify("", nullptr)},
                        completions_fixture().state());
  const std::uint64_t before = completions_fixture().engine().snapshot().requests_finished;
  std::get<std::unique_ptr<Completion>>(routed)->start([] {});
  std::get<std::unique_ptr<Completion>>(routed).reset();
  EXPECT_TRUE(completions_fixture().engine().snapshot().requests_finished <= before + 1);
  completions_fixture().complete(greedy({{"max_tokens", 1}}));  // runs after the cancellation
  EXPECT_EQ(completions_fixture().engine().snapshot().requests_finished, before + 2);
}

TEST(Tokenize, RoundTripsAndCounts) {
  const Json tokens = completions_fixture().ask(
      "/tokenize", {{"prompt", "Tom had a car"}, {"return_token_strs", true}});
  EXPECT_EQ(tokens["count"], tokens["tokens"].size());
  EXPECT_EQ(tokens["token_strs"].size(), tokens["tokens"].size());
  EXPECT_EQ(tokens["max_model_len"], completions_fixture().served().context_tokens());
  const Json bare = completions_fixture().ask(
      "/tokenize", {{"prompt", "Tom had a car"}, {"add_special_tokens", false}});
  EXPECT_EQ(bare["count"].get<int>() + 1, tokens["count"].get<int>());
  EXPECT_EQ(completions_fixture().ask("/detokenize", {{"tokens", bare["tokens"]}})["prompt"],
            "Tom had a car");
}

TEST(Render, GivesTheTokensOfEveryPromptOfACompletion) {
  const Json rendered = completions_fixture().ask(
      "/v1/completions/render", {{"prompt", {"Tom had a car", "Once"}}, {"max_tokens", 5}});
  ASSERT_EQ(rendered.size(), 2u);
  for (const auto& [at, text] : {std::pair(0, "Tom had a car"), std::pair(1, "Once")}) {
    const Json tokens = completions_fixture().ask("/tokenize", {{"prompt", text}});
    EXPECT_EQ(rendered[at]["token_ids"], tokens["tokens"]);
    EXPECT_EQ(rendered[at]["count"], tokens["count"]);
  }
  const Json ids = {5, 6, 7};
  EXPECT_EQ(completions_fixture().ask("/v1/completions/render", {{"prompt", ids}})[0]["token_ids"],
            ids);
}

TEST(RouterViews, TellWhatRoutersAskFor) {
  const auto get = [](const char* path) {
    return Json::parse(completions_fixture().get(path).body);
  };
  EXPECT_EQ(get("/get_server_info")["version"], get("/server_info")["version"]);
  for (const char* const path : {"/model_info", "/get_model_info"}) {
    const Json info = get(path);
    EXPECT_EQ(info["model_path"], "stories");
    EXPECT_EQ(info["tokenizer_path"], "stories");
    EXPECT_EQ(info["is_generation"], true);
  }
  EXPECT_EQ(get("/is_sleeping"), Json({{"is_sleeping", false}}));
  const Json loads = get("/v1/loads");
  ASSERT_EQ(loads["loads"].size(), 1u);
  EXPECT_EQ(loads["loads"][0]["num_running_reqs"], 0);
  EXPECT_EQ(loads["loads"][0]["num_waiting_reqs"], 0);
  EXPECT_EQ(loads["loads"][0]["token_usage"], 0.0);
  EXPECT_EQ(loads["loads"][0]["gen_throughput"], 0.0);
  EXPECT_EQ(loads["aggregate"]["total_reqs"], 0);
  EXPECT_EQ(completions_fixture().post("/flush_cache", Json()).status, 200);
}

TEST(Models, ListsEveryNameAndTheServerDescribesItself) {
  const Json models = Json::parse(completions_fixture().get("/v1/models").body);
  ASSERT_EQ(models["data"].size(), 3u);
  EXPECT_EQ(models["data"][0]["id"], "stories");
  const Json info = Json::parse(completions_fixture().get("/server_info").body);
  EXPECT_EQ(info["version"], "1.2.3");
  EXPECT_EQ(info["max_model_len"], completions_fixture().served().context_tokens());
}

}  // namespace
}  // namespace pagoda::server
