// Stop strings end sequences in the engine: replies are those of a search in the whole text, and
// nothing behind a stop string is computed for, published or counted.
#include "server/api/stop_string_watch.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "counted_allocations.h"
#include "server/api/choice_text.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

StoryFixture& stop_fixture() {
  static StoryFixture fixture;
  return fixture;
}

std::vector<TokenId> tokens_of(std::string_view text) {
  return stop_fixture().tokenizer().encode(text, {});
}

CompletionRequest stopped_request(std::vector<std::string> stops, std::uint32_t tokens_min = 0) {
  CompletionRequest request;
  request.output.stops = text::StopStrings::make(std::move(stops)).value();
  request.engine.end.min_tokens = tokens_min;
  return request;
}

// Returns the number of the token with which the text ends, counted from 1; nothing: none of them.
std::optional<std::size_t> watched_end(const CompletionRequest& request, bool continues,
                                       const std::vector<TokenId>& tokens) {
  StopStringWatch watch(stop_fixture().tokenizer(), request, continues);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (watch.ends_with(0, tokens[i])) return i + 1;
  }
  return std::nullopt;
}

std::optional<std::size_t> shown_end(const CompletionRequest& request, bool continues,
                                     const std::vector<TokenId>& tokens) {
  ChoiceText choice(stop_fixture().tokenizer(), request, continues);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    choice.push({.token = tokens[i], .score = {}});
    if (choice.ended()) return i + 1;
  }
  return std::nullopt;
}

TEST(StopStringWatch, EndsWithTheTokenThatCompletesAStopString) {
  const std::vector<TokenId> tokens =
      tokens_of("Once upon a time, caf\xc3\xa9s were \xe2\x82\xac.");
  const std::string whole = stop_fixture().tokenizer().decode(tokens, false).value();
  const auto end_of = [&](const std::string& stop) {
    return watched_end(stopped_request({stop}), false, tokens);
  };
  EXPECT_EQ(end_of("nothing of it"), std::nullopt);
  for (const std::string stop : {"ce up", "time,", "f\xc3\xa9s", "\xe2\x82\xac", "O", "."}) {
    const std::optional<std::size_t> end = end_of(stop);
    ASSERT_TRUE(end.has_value()) << stop;
    const auto text_of = [&](std::size_t count) {
      return stop_fixture().tokenizer().decode(std::span(tokens).first(count), false).value();
    };
    EXPECT_NE(text_of(*end).find(stop), std::string::npos) << stop;
    EXPECT_EQ(text_of(*end - 1).find(stop), std::string::npos) << stop;
  }
}

// Tokens by chance, bytes of characters and control tokens among them; stop strings out of the text
// they make.
TEST(StopStringWatch, EndsWhereTheTextIsCut) {
  const text::Tokenizer& tokenizer = stop_fixture().tokenizer();
  std::mt19937 random(7);
  const std::vector<TokenId> words = tokens_of(
      "The caf\xc3\xa9 \xf0\x9f\x98\x80\xe2\x82\xac is a bit a bit far, is it? \xc3\xa9\xc3\xa9");
  std::size_t ends = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < 40; ++i) {
      tokens.push_back(random() % 4 == 0
                           ? TokenId(static_cast<std::uint32_t>(random() % (tokenizer.size() + 2)))
                           : words[random() % words.size()]);
    }
    text::Detokenizer detokenizer(tokenizer);
    std::string text;
    for (const TokenId token : tokens) text += detokenizer.push(token);
    std::vector<std::string> stops;
    for (std::size_t i = 0; i < 1 + random() % 3 && !text.empty(); ++i) {
      stops.push_back(text.substr(random() % text.size(), 1 + random() % 6));
    }
    if (stops.empty()) continue;
    CompletionRequest request =
        stopped_request(std::move(stops), static_cast<std::uint32_t>(random() % 12));
    request.output.show_special_tokens = random() % 2 == 0;
    const bool continues = random() % 2 == 0;
    const auto end = watched_end(request, continues, tokens);
    EXPECT_EQ(end, shown_end(request, continues, tokens)) << round;
    ends += end ? 1 : 0;
  }
  EXPECT_GT(ends, 1000u);
}

TEST(StopStringWatch, EachChoiceHasATextOfItsOwn) {
  CompletionRequest request = stopped_request({"upon a"});
  request.engine.sampling.n = 2;
  StopStringWatch watch(stop_fixture().tokenizer(), request, false);
  const std::vector<TokenId> tokens = tokens_of("Once upon a time");
  bool first_ended = false;
  for (const TokenId token : tokens) {
    first_ended = first_ended || watch.ends_with(0, token);
    EXPECT_FALSE(watch.ends_with(1, tokens.front()));
  }
  EXPECT_TRUE(first_ended);
}

TEST(StopStringWatch, AllocatesNothing) {
  const text::Tokenizer& tokenizer = stop_fixture().tokenizer();
  CompletionRequest request = stopped_request({std::string(4000, 'x'), "\xc3\xa9\xc3\xa9\xc3\xa9"});
  request.output.show_special_tokens = true;
  StopStringWatch watch(tokenizer, request, false);
  const std::uint64_t before = allocations_so_far();
  for (std::uint32_t id = 0; id < tokenizer.size() + 2; ++id) {
    EXPECT_FALSE(watch.ends_with(0, TokenId(id)));
  }
  EXPECT_EQ(allocations_so_far(), before);
}

Json story_body(Json more) {
  Json body = {{"prompt", "Lily and Tom went to the park"},
               {"temperature", 0},
               {"seed", 3},
               {"max_tokens", 60}};
  body.update(more);
  return body;
}

// With a stop string in the middle of what the client predicts, whole drafts lie behind it.
TEST(StopStringsInTheEngine, NothingBehindOneIsPublishedOrCounted) {
  StoryFixture& fixture = stop_fixture();
  const Json plain = fixture.complete(
      story_body({{"speculative", false}, {"cache_salt", "plain"}, {"return_token_ids", true}}));
  const std::string text = plain["choices"][0]["text"];
  const Json prediction = {{"type", "content"}, {"content", text}};
  Json tokens = plain["choices"][0]["prompt_token_ids"];
  for (const Json& token : plain["choices"][0]["token_ids"]) tokens.push_back(token);
  std::uint64_t accepted = 0;
  for (int i = 0; i < 12; ++i) {  // until it is known what rows cost here
    const std::string stop = text.substr(text.size() / 2 + static_cast<std::size_t>(i), 4);
    const std::string salt = "stop" + std::to_string(i);
    const std::uint64_t before = fixture.engine().snapshot().output_tokens;
    const Json reply = fixture.complete(
        story_body({{"prediction", prediction}, {"stop", stop}, {"cache_salt", salt}}));
    const Json& usage = reply["usage"];
    EXPECT_EQ(reply["choices"][0]["text"], text.substr(0, text.find(stop)));
    EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(reply["choices"][0]["stop_reason"], stop);
    const std::uint64_t completion = usage["completion_tokens"];
    EXPECT_EQ(fixture.engine().snapshot().output_tokens - before, completion);
    EXPECT_LE(usage["completion_tokens_details"]["accepted_prediction_tokens"], completion);
    if (usage.contains("speculation")) {
      accepted += usage["speculation"]["accepted_tokens"].get<std::uint64_t>();
      EXPECT_LE(usage["speculation"]["accepted_tokens"], completion);
    }
    const Json found = fixture.complete(
        {{"prompt", tokens}, {"max_tokens", 1}, {"cache_salt", salt}, {"speculative", false}});
    EXPECT_EQ(found["usage"]["prompt_tokens_details"]["cached_tokens"],
              usage["prompt_tokens"].get<std::uint64_t>() + completion - 1)
        << "the last token of an answer is never fed";
  }
  EXPECT_GT(accepted, 0u);
}

TEST(StopStringsInTheEngine, AChoiceThatMetOneComputesNoFurtherBesideAnother) {
  StoryFixture& fixture = stop_fixture();
  const Json body = {{"prompt", "Once upon a time"},
                     {"n", 3},
                     {"temperature", 1},
                     {"seed", 11},
                     {"max_tokens", 50},
                     {"speculative", false}};
  const Json free = fixture.complete(body);
  // Six letters of the first choice that the second has not.
  const std::string first = free["choices"][0]["text"];
  const std::string second = free["choices"][1]["text"];
  std::size_t at = 5;
  while (at + 6 < first.size() && second.find(first.substr(at, 6)) != std::string::npos) ++at;
  const std::string stop = first.substr(at, 6);
  Json stopped = body;
  stopped["stop"] = stop;
  const std::uint64_t before = fixture.engine().snapshot().output_tokens;
  const Json reply = fixture.complete(stopped);
  std::size_t went_on = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string whole = free["choices"][i]["text"];
    const std::size_t end = whole.find(stop);
    EXPECT_EQ(reply["choices"][i]["text"], whole.substr(0, end));
    went_on += end == std::string::npos ? 1 : 0;
  }
  ASSERT_GT(went_on, 0u) << "one goes on";
  EXPECT_EQ(fixture.engine().snapshot().output_tokens - before,
            reply["usage"]["completion_tokens"].get<std::uint64_t>());
}

// The same with what else may be asked for, in streams and whole, drafted and not.
TEST(StopStringsInTheEngine, RepliesAreThoseOfASearchInTheWholeText) {
  StoryFixture& fixture = stop_fixture();
  const std::string text =
      fixture.complete(story_body({{"speculative", false}}))["choices"][0]["text"];
  const std::string stop = text.substr(40, 5);
  const Json prediction = {{"type", "content"}, {"content", text}};
  for (const Json& more :
       {Json::object(), Json{{"include_stop_str_in_output", true}}, Json{{"logprobs", 2}},
        Json{{"min_tokens", 40}}, Json{{"min_tokens", 3}}, Json{{"return_token_ids", true}},
        Json{{"max_tokens", 12}}, Json{{"n", 2}}, Json{{"ignore_eos", true}}}) {
    Json asked = story_body(more);
    asked["stop"] = Json{"never said", stop};
    asked["speculative"] = false;
    const Json plain = fixture.complete(asked);
    const std::uint64_t before = fixture.engine().snapshot().output_tokens;
    asked.erase("speculative");
    asked["prediction"] = prediction;
    const Json drafted = fixture.complete(asked);
    EXPECT_EQ(drafted["choices"], plain["choices"]) << more;
    EXPECT_EQ(drafted["usage"]["completion_tokens"], plain["usage"]["completion_tokens"]) << more;
    EXPECT_EQ(fixture.engine().snapshot().output_tokens - before,
              plain["usage"]["completion_tokens"].get<std::uint64_t>())
        << more;
    std::string streamed;
    for (const Json& event : fixture.stream("/v1/completions", asked)) {
      for (const Json& choice : event["choices"]) {
        if (choice["index"] == 0) streamed += choice["text"].get<std::string>();
      }
    }
    EXPECT_EQ(streamed, plain["choices"][0]["text"]) << more;
  }
}

// Reasoning and what follows it are one text for stop strings.
TEST(StopStringsInTheEngine, ChatsWithGrammarsToolsAndReasoningEndTheSameWay) {
  StoryFixture& fixture = stop_fixture();
  const Json message = {{"role", "user"}, {"content", "Tell a story"}};
  const Json tool = {{"type", "function"},
                     {"function", {{"name", "run"}, {"parameters", {{"type", "object"}}}}}};
  for (const Json& more :
       {Json::object(), Json{{"tools", {tool}}}, Json{{"reasoning_effort", "low"}},
        Json{{"structured_outputs", {{"regex", "[a-z ]{30,60}"}}}}}) {
    Json asked = {{"messages", {message}},
                  {"temperature", 0},
                  {"seed", 3},
                  {"max_tokens", 40},
                  {"speculative", false}};
    asked.update(more);
    const Json whole = fixture.ask("/v1/chat/completions", asked);
    ASSERT_TRUE(whole["choices"][0]["message"]["content"].is_string()) << whole;
    const std::string text = whole["choices"][0]["message"]["content"];
    ASSERT_GT(text.size(), 20u) << more;
    const std::string stop = text.substr(12, 4);
    asked["stop"] = stop;
    asked.erase("speculative");
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t before = fixture.engine().snapshot().output_tokens;
      const Json reply = fixture.ask("/v1/chat/completions", asked);
      EXPECT_EQ(reply["choices"][0]["message"]["content"], text.substr(0, text.find(stop))) << more;
      EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
      EXPECT_EQ(fixture.engine().snapshot().output_tokens - before,
                reply["usage"]["completion_tokens"].get<std::uint64_t>())
          << more;
    }
  }
}

}  // namespace
}  // namespace pagoda::server
