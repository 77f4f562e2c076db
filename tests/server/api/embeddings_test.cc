// POST /v1/embeddings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "server/api/embeddings.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kEmbeddings = "/v1/embeddings";
const std::string kLongText = repeated("Lily and Tom went to the park to play. ", 9);

std::string vector_of(const Json& reply, std::size_t index = 0) {
  return reply["data"][index]["embedding"].dump();
}

TEST(Embeddings, HaveTheModelsWidthAndLengthOne) {
  StoryFixture fixture;
  const Json reply = fixture.ask(kEmbeddings, {{"model", "stories"}, {"input", "Once upon"}});
  EXPECT_EQ(reply["object"], "list");
  EXPECT_EQ(reply["model"], "stories");
  ASSERT_EQ(reply["data"].size(), 1u);
  const Json& vector = reply["data"][0]["embedding"];
  EXPECT_EQ(vector.size(), fixture.engine().limits().hidden_width);
  double squares = 0;
  for (const Json& value : vector) squares += value.get<double>() * value.get<double>();
  EXPECT_NEAR(squares, 1, 1e-5);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], reply["usage"]["total_tokens"]);
  EXPECT_EQ(reply["pooling"], Json({{"type", "last"}, {"computes_whole_prompt", false}}));
}

TEST(Embeddings, AreTheSameCachedAloneInABatchAndAsTokens) {
  for (const char* const pooling : {"last", "mean"}) {
    StoryFixture fixture;
    const auto ask = [&](const Json& input) {
      return fixture.ask(kEmbeddings, {{"input", input}, {"pooling", pooling}});
    };
    const Json cold = ask(kLongText);
    const Json warm = ask(kLongText);
    EXPECT_EQ(vector_of(warm), vector_of(cold));
    const int prompt = warm["usage"]["prompt_tokens"];
    const bool is_last = std::string(pooling) == "last";
    EXPECT_EQ(warm["usage"]["prompt_tokens_details"]["cached_tokens"], is_last ? prompt - 1 : 0);
    EXPECT_EQ(warm["pooling"]["computes_whole_prompt"], !is_last);
    const Json batch = ask(Json::array({"Tom", kLongText, "Lily ran", kLongText + "x"}));
    ASSERT_EQ(batch["data"].size(), 4u);
    EXPECT_EQ(vector_of(batch, 1), vector_of(cold));
    EXPECT_NE(vector_of(batch, 0), vector_of(cold));
    StoryFixture other;
    const Json tokens = other.ask("/tokenize", {{"prompt", kLongText}})["tokens"];
    EXPECT_EQ(vector_of(other.ask(kEmbeddings, {{"input", tokens}, {"pooling", pooling}})),
              vector_of(cold));
    EXPECT_EQ(
        vector_of(other.ask(kEmbeddings, {{"input", Json::array({tokens})}, {"pooling", pooling}})),
        vector_of(cold));
  }
}

TEST(Embeddings, FillTheCacheForAnswersAndUseWhatTheseLeft) {
  StoryFixture fixture;
  fixture.ask(kEmbeddings, {{"input", kLongText}});
  const Json answer =
      fixture.complete({{"prompt", kLongText}, {"max_tokens", 3}, {"temperature", 0}});
  const int prompt = answer["usage"]["prompt_tokens"];
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"], prompt - 1);
  StoryFixture plain;
  EXPECT_EQ(
      plain.complete(
          {{"prompt", kLongText}, {"max_tokens", 3}, {"temperature", 0}})["choices"][0]["text"],
      answer["choices"][0]["text"]);
}

// vLLM's field: the vector is that of the last tokens alone, and the reply says what was left out.
TEST(Embeddings, OfALongTextAreThoseOfItsLastTokens) {
  StoryFixture fixture;
  const Json ids = fixture.ask("/tokenize", {{"prompt", kLongText}})["tokens"];
  const Json last(std::vector<Json>(ids.end() - 9, ids.end()));
  const auto ask = [&](const Json& input, const Json& kept) {
    return fixture.ask(kEmbeddings, {{"input", input}, {"truncate_prompt_tokens", kept}});
  };
  const Json plain = fixture.ask(kEmbeddings, {{"input", last}});
  const Json cut = ask(ids, 9);
  EXPECT_EQ(vector_of(cut), vector_of(plain));
  EXPECT_EQ(cut["usage"]["prompt_tokens"], 9);
  EXPECT_EQ(cut["usage"]["prompt_tokens_details"]["dropped_tokens"], ids.size() - 9);
  EXPECT_EQ(cut["truncated"], true);
  EXPECT_EQ(cut["prompt_truncated"],
            Json({{"type", "tokens"}, {"limit_tokens", 9}, {"dropped_tokens", ids.size() - 9}}));
  EXPECT_FALSE(plain.contains("truncated"));
  // A text of any length fits: beside it there is a BOS, and no output.
  const std::uint64_t context = fixture.served().context_tokens();
  const std::string long_text = repeated("long ", 2000);
  EXPECT_EQ(ask(long_text, -1)["usage"]["prompt_tokens"], context - 1);
  EXPECT_EQ(ask(long_text, context - 1)["usage"]["prompt_tokens"], context - 1);
  const Json several = ask({last, "Lily ran", long_text}, 9);
  EXPECT_EQ(vector_of(several), vector_of(plain));
  EXPECT_EQ(several["prompt_truncated"][0], nullptr);
  EXPECT_EQ(several["prompt_truncated"][2]["limit_tokens"], 9);
}

// The expected texts are RFC 4648's digits of the bytes of IEEE 754 numbers.
TEST(Embeddings, AreGivenInBase64Too) {
  EXPECT_EQ(base64_of(std::vector<float>{1.0f}), "AACAPw==");
  EXPECT_EQ(base64_of(std::vector<float>{1.0f, -2.0f}), "AACAPwAAAMA=");
  EXPECT_EQ(base64_of(std::vector<float>{0.0f, 0.0f, 0.0f}), "AAAAAAAAAAAAAAAA");
  StoryFixture fixture;
  const Json floats = fixture.ask(kEmbeddings, {{"input", "Once"}})["data"][0]["embedding"];
  std::vector<float> values;
  for (const Json& value : floats) values.push_back(value.get<float>());
  const Json coded = fixture.ask(kEmbeddings, {{"input", "Once"}, {"encoding_format", "base64"}});
  EXPECT_EQ(coded["data"][0]["embedding"], base64_of(values)) << "the same bits";
}

// A runner whose hidden states have one number of the test's.
class BrokenVectors final : public engine::Runner {
 public:
  BrokenVectors(engine::Runner& inner, float value) : inner_(inner), value_(value) {}

  std::uint32_t launches_ahead() const override { return inner_.launches_ahead(); }
  std::uint32_t hidden_width() const override { return inner_.hidden_width(); }
  void launch(const engine::Launch& launch) override { inner_.launch(launch); }
  engine::Collected collect() override {
    engine::Collected all = inner_.collect();
    hidden_.assign(all.hidden.begin(), all.hidden.end());
    if (!hidden_.empty()) hidden_.back() = value_;
    all.hidden = hidden_;
    return all;
  }

 private:
  engine::Runner& inner_;
  float value_;
  std::vector<float> hidden_;
};

TEST(Embeddings, ThatAreNotFiniteAreAnErrorAndNoBrokenJson) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 1.0f}) {
    std::unique_ptr<BrokenVectors> broken;
    StoryFixture fixture(100, true, [&](engine::Runner& runner) -> engine::Runner& {
      broken = std::make_unique<BrokenVectors>(runner, value);
      return *broken;
    });
    for (const char* const format : {"float", "base64"}) {
      const HttpReply reply =
          fixture.post(kEmbeddings, {{"input", "Once upon"}, {"encoding_format", format}});
      EXPECT_EQ(reply.status, std::isfinite(value) ? 200 : 500) << value << reply.body;
      EXPECT_TRUE(Json::accept(reply.body)) << reply.body;
    }
  }
}

TEST(Embeddings, OfBadInputAreRefusedWithThePath) {
  StoryFixture fixture;
  const struct {
    const char* body;
    const char* path;
  } kCases[] = {{R"({})", "input"},
                {R"({"input": ""})", "input"},
                {R"({"input": []})", "input"},
                {R"({"input": 7})", "input"},
                {R"({"input": ["a", 7]})", "input[1]"},
                {R"({"input": ["a", ""]})", "input[1]"},
                {R"({"input": [[1], [999999]]})", "input[1][0]"},
                {R"({"input": [1, "a"]})", "input[1]"},
                {R"({"input": "a", "dimensions": 8})", "dimensions"},
                {R"({"input": "a", "encoding_format": "hex"})", "encoding_format"},
                {R"({"input": "a", "pooling": "max"})", "pooling"},
                {R"({"input": "a", "stream": true})", "stream"},
                {R"({"input": "a", "truncate_prompt_tokens": 0})", "truncate_prompt_tokens"},
                {R"({"input": "a", "truncate_prompt_tokens": 512})", "truncate_prompt_tokens"},
                {R"({"input": "a", "model": "other"})", "model"}};
  for (const auto& one : kCases) {
    const HttpReply reply = fixture.post_text(kEmbeddings, one.body);
    EXPECT_GE(reply.status, 400) << one.body;
    EXPECT_LT(reply.status, 500) << one.body;
    EXPECT_THAT(reply.body, testing::HasSubstr(one.path)) << one.body;
  }
  Json many = Json::array();
  for (int i = 0; i < 2049; ++i) many.push_back("a");
  EXPECT_EQ(fixture.post(kEmbeddings, {{"input", many}}).status, 400);
  EXPECT_EQ(fixture.post(kEmbeddings, {{"input", repeated("long ", 2000)}}).status, 400);
}

}  // namespace
}  // namespace pagoda::server
