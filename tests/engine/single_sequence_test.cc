#include "engine/single_sequence.h"

#include <gtest/gtest.h>

#include <string>

#include "base/thread_pool.h"
#include "model/test_model.h"

namespace pagoda::engine {
namespace {

class SingleSequence : public testing::Test {
 protected:
  SingleOutput answer(const SingleRequest& request, std::uint32_t rows_max = 64) {
    auto outcome = try_answer(request, rows_max);
    EXPECT_TRUE(outcome.ok()) << outcome.error().message;
    return std::move(outcome).value();
  }
  Result<SingleOutput> try_answer(const SingleRequest& request, std::uint32_t rows_max = 64) {
    model::Decoder decoder(model_.config(), model_.weights(), *kernels::available_sets().back(),
                           pool_, {.rows_max = rows_max});
    return generate_single(decoder, request, clock_);
  }
  SingleRequest request_from_bos(std::uint32_t tokens_max) const {
    SingleRequest request;
    request.prompt = {TokenId(1)};
    request.tokens_max = tokens_max;
    request.context_max = model_.config().context;
    return request;
  }
  std::string text_of(const std::vector<TokenId>& tokens) const {
    const auto pieces = model_.file().metadata().texts("tokenizer.ggml.tokens").value();
    std::string text;
    for (const TokenId id : tokens) text += pieces[id.value()];
    const std::string blank = "\u2581";
    for (std::size_t at; (at = text.find(blank)) != std::string::npos;) {
      text.replace(at, blank.size(), " ");
    }
    return text;
  }

  const model::TestModel model_{model::test_model_path("stories260K.gguf")};
  ThreadPool pool_{2};
  SteadyClock clock_;
};

TEST_F(SingleSequence, GreedyFromBosTellsTheKnownStory) {
  const std::string story = text_of(answer(request_from_bos(60)).tokens);
  const std::string known =
      " Once upon a time, there was a little girl named Lily. She loved to play outside in the "
      "park. One day, she saw a big, red ball.";
  EXPECT_EQ(story.substr(0, known.size()), known);
}

TEST_F(SingleSequence, WithoutTheCacheTheTextIsTheSameAndTheWorkIsNot) {
  SingleRequest request = request_from_bos(100);
  request.sampling = {.temperature = 0.9f, .seed = 5};
  const SingleOutput cached = answer(request);
  request.kv_cache = false;
  const SingleOutput naive = answer(request);
  EXPECT_EQ(naive.tokens, cached.tokens);
  EXPECT_EQ(cached.tokens_computed, 100u);
  EXPECT_EQ(naive.tokens_computed, 100u * 101 / 2);
}

TEST_F(SingleSequence, ThePrefillChunkChangesNothing) {
  SingleRequest request = request_from_bos(30);
  request.prompt = model::random_tokens(model_.config(), 90, 8);
  const SingleOutput expected = answer(request, 512);
  for (const std::uint32_t rows_max : {1u, 7u, 16u}) {
    EXPECT_EQ(answer(request, rows_max).tokens, expected.tokens) << rows_max;
  }
}

TEST_F(SingleSequence, EndsWhereItIsToldAndSaysWhy) {
  SingleRequest request = request_from_bos(10);
  EXPECT_EQ(answer(request).reason, FinishReason::kLength);
  EXPECT_EQ(answer(request).tokens.size(), 10u);

  const TokenId third = answer(request).tokens[2];
  request.stops = [third](TokenId id) { return id == third; };
  EXPECT_EQ(answer(request).reason, FinishReason::kStop);
  EXPECT_EQ(answer(request).tokens.size(), 2u) << "the stopping token is not part of the answer";
  request.stops = nullptr;

  request.context_max = 5;
  EXPECT_EQ(answer(request).reason, FinishReason::kContext);
  EXPECT_EQ(answer(request).tokens.size(), 4u);

  int asked = 0;
  request.cancelled = [&asked] { return ++asked > 3; };
  EXPECT_EQ(answer(request).reason, FinishReason::kCancelled);
}

TEST_F(SingleSequence, BadRequestsAreRefusedWithTheNumbers) {
  SingleRequest request = request_from_bos(10);
  request.prompt.assign(600, TokenId(5));
  const auto too_long = try_answer(request);
  ASSERT_FALSE(too_long.ok());
  EXPECT_NE(too_long.error().message.find("600"), std::string::npos);
  EXPECT_NE(too_long.error().message.find("512"), std::string::npos);

  request.prompt = {TokenId(512)};
  const auto foreign = try_answer(request);
  ASSERT_FALSE(foreign.ok());
  EXPECT_NE(foreign.error().message.find("token id 512"), std::string::npos);

  request.prompt.clear();
  EXPECT_FALSE(try_answer(request).ok());
}

}  // namespace
}  // namespace pagoda::engine
