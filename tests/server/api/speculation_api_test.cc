// Speculation by requests: what is read, refused and told. Answers are the same with and without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;

StoryFixture& speculation_fixture() {
  static StoryFixture fixture;
  return fixture;
}

Json drafted_body(Json more = Json::object()) {
  Json body = {{"prompt", "Lily and Tom went to the park"},
               {"temperature", 0},
               {"seed", 3},
               {"max_tokens", 60}};
  body.update(more);
  return body;
}

TEST(SpeculationApi, APredictionThatComesTrueIsAcceptedAndChangesNothing) {
  StoryFixture& fixture = speculation_fixture();
  const Json plain = fixture.complete(drafted_body({{"speculative", false}}));
  EXPECT_FALSE(plain["usage"].contains("speculation"));
  const std::string text = plain["choices"][0]["text"];
  std::uint64_t accepted = 0;
  for (int i = 0; i < 8; ++i) {  // until it is known what rows cost here
    const Json prediction = {{"type", "content"}, {"content", text}};
    const Json reply = fixture.complete(
        drafted_body({{"prediction", prediction}, {"cache_salt", std::to_string(i)}}));
    EXPECT_EQ(reply["choices"], plain["choices"]);
    const Json details = reply["usage"]["completion_tokens_details"];
    accepted += details["accepted_prediction_tokens"].get<std::uint64_t>();
    EXPECT_GE(details["rejected_prediction_tokens"].get<int>(), 0);
  }
  EXPECT_GT(accepted, 0u);
  const Json parts = {{{"type", "text"}, {"text", text.substr(0, 20)}},
                      {{"type", "text"}, {"text", text.substr(20)}}};
  const Json reply =
      fixture.complete(drafted_body({{"prediction", {{"type", "content"}, {"content", parts}}}}));
  EXPECT_EQ(reply["choices"], plain["choices"]);
}

// The engine's own counter knows nothing of choices.
TEST(SpeculationApi, DraftsOfEveryChoiceAreCounted) {
  StoryFixture& fixture = speculation_fixture();
  const auto all_drafted = [&] {
    const std::string metrics = fixture.send({.method = "GET", .path = "/metrics"}).body;
    const std::string line = "\nvllm:spec_decode_num_draft_tokens_total{";
    const std::size_t at = metrics.find("} ", metrics.find(line));
    return std::stod(metrics.substr(at + 2));
  };
  double told = 0;
  for (int i = 0; i < 20; ++i) {  // until it is known what rows cost here
    const double before = all_drafted();
    const Json usage =
        fixture.complete(drafted_body({{"n", 3}, {"cache_salt", std::to_string(i)}}))["usage"];
    const double here =
        usage.contains("speculation") ? usage["speculation"]["draft_tokens"].get<double>() : 0;
    EXPECT_EQ(here, all_drafted() - before);
    told += here;
  }
  EXPECT_GT(told, 0);
}

// FailingRunner computes like another runner, but fails to sample the token behind `position` where
// one launch samples both.
class FailingRunner final : public engine::Runner {
 public:
  explicit FailingRunner(engine::Runner& inner) : inner_(inner) {}

  std::uint32_t hidden_width() const override { return inner_.hidden_width(); }
  std::uint32_t drafts_max() const override { return inner_.drafts_max(); }
  void launch(const engine::Launch& launch) override {
    drafts_.clear();
    std::size_t first = 0;
    for (const engine::LaunchSample& sample : launch.samples) {
      if (sample.position <= position && position < sample.position + sample.drafts.size()) {
        const auto tokens = sample.drafts.first(position + 1 - sample.position);
        drafts_.assign(tokens.begin(), tokens.end());
        first_ = first;
      }
      first += 1 + sample.drafts.size();
    }
    inner_.launch(launch);
  }
  engine::Collected collect() override {
    const engine::Collected collected = inner_.collect();
    const bool is_sampled =
        !drafts_.empty() &&
        std::equal(drafts_.begin(), drafts_.end(), collected.samples.subspan(first_).begin(),
                   [](TokenId draft, const Result<engine::SampledToken>& sample) {
                     return sample.ok() && sample.value().token == draft;
                   });
    if (is_sampled) {
      collected.samples[first_ + drafts_.size()] = Error{ErrorCode::kCorrupt, "a broken row"};
      ++failures;
    }
    return collected;
  }

  std::atomic<std::uint64_t> position{UINT64_MAX};
  std::atomic<int> failures{0};

 private:
  engine::Runner& inner_;
  std::vector<TokenId> drafts_;  // up to the one at `position`
  std::size_t first_ = 0;
};

// Without drafts the request has ended before that row is computed.
TEST(SpeculationApi, AnErrorBehindAStopStringChangesNothing) {
  std::unique_ptr<FailingRunner> failing;
  StoryFixture fixture(100, true, [&](engine::Runner& runner) -> engine::Runner& {
    failing = std::make_unique<FailingRunner>(runner);
    return *failing;
  });
  const std::string text =
      fixture.complete(drafted_body({{"speculative", false}}))["choices"][0]["text"];
  const Json prediction = {{"type", "content"}, {"content", text}};
  const Json stop = text.substr(0, 60);
  const Json plain = fixture.complete(drafted_body({{"speculative", false}, {"stop", stop}}));
  EXPECT_EQ(plain["choices"][0]["finish_reason"], "stop");
  failing->position = plain["usage"]["total_tokens"].get<std::uint64_t>() - 1;
  for (int i = 0; i < 50 && failing->failures < 2; ++i) {  // until drafts reach so far
    const Json reply = fixture.complete(drafted_body(
        {{"prediction", prediction}, {"stop", stop}, {"cache_salt", std::to_string(i)}}));
    EXPECT_EQ(reply["choices"], plain["choices"]);
  }
  EXPECT_EQ(failing->failures, 2);
}

TEST(SpeculationApi, FieldsOfAWrongKindAreRefusedByTheirName) {
  StoryFixture& fixture = speculation_fixture();
  const auto refusal = [&](Json more) {
    const HttpReply reply = fixture.post("/v1/completions", drafted_body(std::move(more)));
    EXPECT_EQ(reply.status, 400);
    return reply.body;
  };
  EXPECT_THAT(refusal({{"speculative", 3}}), HasSubstr("speculative"));
  EXPECT_THAT(refusal({{"speculative", {{"n_max", -1}}}}), HasSubstr("speculative.n_max"));
  EXPECT_THAT(refusal({{"speculative.n_max", "two"}}), HasSubstr("speculative.n_max"));
  EXPECT_THAT(refusal({{"prediction", "text"}}), HasSubstr("prediction"));
  EXPECT_THAT(refusal({{"prediction", {{"type", "tokens"}, {"content", ""}}}}),
              HasSubstr("prediction.type"));
  EXPECT_THAT(refusal({{"prediction", {{"type", "content"}}}}), HasSubstr("prediction.content"));
  EXPECT_THAT(refusal({{"prediction", {{"type", "content"}, {"content", 3}}}}),
              HasSubstr("prediction.content"));
}

// Drafts refuse nothing: of a prediction that no answer can be as long as, a part is taken.
TEST(SpeculationApi, APredictionBeyondTheContextIsCut) {
  StoryFixture& fixture = speculation_fixture();
  const Json plain = fixture.complete(drafted_body(Json::object()));
  const Json predicted = fixture.complete(drafted_body(
      {{"prediction", {{"type", "content"}, {"content", repeated(" Tom ran.", 4000)}}}}));
  EXPECT_EQ(predicted["choices"][0]["text"], plain["choices"][0]["text"]);
}

TEST(SpeculationApi, ARequestMayHaveFewDraftTokensOrNone) {
  StoryFixture& fixture = speculation_fixture();
  const Json plain = fixture.complete(drafted_body({{"speculative", false}}));
  for (const Json& more : {Json{{"speculative", true}}, Json{{"speculative", {{"n_max", 2}}}},
                           Json{{"speculative.n_max", 0}}, Json{{"speculative", nullptr}}}) {
    EXPECT_EQ(fixture.complete(drafted_body(more))["choices"], plain["choices"]) << more;
  }
  const Json none = fixture.complete(drafted_body({{"speculative.n_max", 0}}));
  EXPECT_FALSE(none["usage"].contains("speculation"));
}

TEST(SpeculationApi, IsCounted) {
  StoryFixture& fixture = speculation_fixture();
  std::uint64_t accepted = 0;
  for (int i = 0; i < 8; ++i) {
    const Json usage = fixture.complete(drafted_body())["usage"];
    if (!usage.contains("speculation")) continue;
    const Json& counts = usage["speculation"];
    EXPECT_GE(counts["draft_tokens"], counts["accepted_tokens"]);
    EXPECT_GE(counts["draft_tokens"], counts["drafts"]);
    accepted += counts["accepted_tokens"].get<std::uint64_t>();
  }
  EXPECT_GT(accepted, 0u) << "a repeated question is in the tree";
  const std::string metrics = fixture.send({.method = "GET", .path = "/metrics"}).body;
  for (const char* const name :
       {"vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_draft_tokens_total",
        "vllm:spec_decode_num_accepted_tokens_total",
        "llamacpp:spec_decode_num_accepted_tokens_total", "position=\"0\"",
        "pagoda:draft_find_seconds_total", "pagoda:draft_model_seconds_total",
        "pagoda:draft_rows_rejected_total", "pagoda:draft_steps_saved_total"}) {
    EXPECT_THAT(metrics, HasSubstr(name));
  }
}

// The counts of an answer are told by every API, of the same request in the same words.
TEST(SpeculationApi, OtherApisTellTheirDraftsToo) {
  StoryFixture& fixture = speculation_fixture();
  const Json messages = {{{"role", "user"}, {"content", "Tell me of Lily and Tom."}}};
  struct Api {
    const char* path;
    Json body;
    const char* usage;  // the member with counts; "": the reply itself
  };
  const std::vector<Api> apis = {
      {"/v1/responses", {{"input", messages}, {"max_output_tokens", 60}}, "usage"},
      {"/v1/messages", {{"messages", messages}, {"max_tokens", 60}}, "usage"},
      {"/api/chat",
       {{"messages", messages}, {"stream", false}, {"options", {{"num_predict", 60}}}},
       ""}};
  for (const Api& api : apis) {
    const auto counts_of = [&](const Json& more) {
      Json body = api.body;
      body.update({{"temperature", 0}, {"ignore_eos", true}});
      body.update(more);
      const Json reply = fixture.ask(api.path, body);
      return *api.usage == 0 ? reply : reply[api.usage];
    };
    EXPECT_FALSE(counts_of({{"speculative", false}}).contains("speculation")) << api.path;
    std::uint64_t accepted = 0;
    for (int i = 0; i < 8; ++i) {  // a repeated question, until it is known what rows cost here
      const Json counts = counts_of(Json::object());
      if (!counts.contains("speculation")) continue;
      EXPECT_GE(counts["speculation"]["draft_tokens"], counts["speculation"]["accepted_tokens"]);
      accepted += counts["speculation"]["accepted_tokens"].get<std::uint64_t>();
    }
    EXPECT_GT(accepted, 0u) << api.path;
  }
}

TEST(SpeculationApi, ResponsesTellWhatBecameOfAPrediction) {
  StoryFixture& fixture = speculation_fixture();
  const auto ask = [&](Json more) {
    Json body = {{"input", "Tell me of Lily."},
                 {"temperature", 0},
                 {"ignore_eos", true},
                 {"max_output_tokens", 60}};
    body.update(more);
    return fixture.ask("/v1/responses", body);
  };
  const Json plain = ask({{"speculative", false}});
  EXPECT_EQ(plain["usage"]["output_tokens_details"]["accepted_prediction_tokens"], 0);
  const std::string text = plain["output"][0]["content"][0]["text"];
  std::uint64_t accepted = 0;
  for (int i = 0; i < 8; ++i) {
    const Json prediction = {{"type", "content"}, {"content", text}};
    const Json details = ask({{"prediction", prediction},
                              {"cache_salt", std::to_string(i)}})["usage"]["output_tokens_details"];
    accepted += details["accepted_prediction_tokens"].get<std::uint64_t>();
    EXPECT_GE(details["rejected_prediction_tokens"].get<int>(), 0);
  }
  EXPECT_GT(accepted, 0u);
}

}  // namespace
}  // namespace pagoda::server
