// A request alone on a backend gets what it gets from a decoder alone.
#include "app/single_request.h"

#include <gtest/gtest.h>

#include "bench/toy_model.h"
#include "engine/backends/cpu_backend.h"
#include "kernels/select.h"

namespace pagoda::app {
namespace {

class RunBackend : public testing::Test {
 protected:
  engine::SingleRequest request() const {
    engine::SingleRequest asked;
    for (std::uint32_t i = 0; i < 40; ++i) asked.prompt.emplace_back(i * 37 % 128);
    asked.tokens_max = 20;
    asked.context_max = 256;
    return asked;
  }
  std::unique_ptr<engine::CpuBackend> backend(std::uint64_t context = 256) const {
    engine::BackendOptions sizes;
    sizes.threads = 1;
    sizes.kv_bytes = 1 << 20;
    sizes.context_tokens = context;
    sizes.scheduler.sequences_max = 1;
    sizes.scheduler.batched_tokens_max = 16;
    return engine::CpuBackend::create(model_.config(), model_.weights(), kernels::ref_set(), sizes)
        .value();
  }
  std::vector<TokenId> by_decoder(const engine::SingleRequest& asked) const {
    ThreadPool pool(1);
    model::Decoder decoder(model_.config(), model_.weights(), kernels::ref_set(), pool,
                           {.rows_max = 16, .kv_cache_dtype = {}});
    return engine::generate_single(decoder, asked, clock_).value().tokens;
  }

  const bench::ToyModel model_{256};
  SteadyClock clock_;
};

TEST_F(RunBackend, GivesTheTokensOfADecoderAlone) {
  for (const float temperature : {0.0f, 0.9f}) {
    engine::SingleRequest asked = request();
    asked.sampling.temperature = temperature;
    asked.sampling.seed = 5;
    std::vector<TokenId> streamed;
    asked.on_token = [&](TokenId token) { streamed.push_back(token); };
    const EngineOutput given = generate_on(*backend(), asked, clock_).value();
    EXPECT_EQ(given.tokens.size(), 20u);
    EXPECT_EQ(streamed, given.tokens);
    EXPECT_EQ(given.reason, engine::FinishReason::kLength);
    asked.on_token = {};
    EXPECT_EQ(given.tokens, by_decoder(asked));
  }
}

TEST_F(RunBackend, EndsWhereTheContextDoes) {
  const EngineOutput given = generate_on(*backend(50), request(), clock_).value();
  EXPECT_EQ(given.tokens.size(), 10u);
  EXPECT_EQ(given.reason, engine::FinishReason::kContext);
}

TEST_F(RunBackend, EndsWhenItIsCancelled) {
  engine::SingleRequest asked = request();
  int asked_for = 0;
  asked.cancelled = [&] { return ++asked_for > 5; };
  const EngineOutput given = generate_on(*backend(), asked, clock_).value();
  EXPECT_EQ(given.reason, engine::FinishReason::kCancelled);
  EXPECT_LT(given.tokens.size(), 20u);
}

TEST_F(RunBackend, RefusesAPromptThatDoesNotFit) {
  const auto refused = generate_on(*backend(30), request(), clock_);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("40"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace pagoda::app
