// On a GPU as on a CPU (tests/engine/kv_range_test.cc): queries, keys and values that the cache's
// element has no number for end their request, are not published and touch nobody else.
#include <gtest/gtest.h>

#include <tuple>

#include "engine/backends/gpu_engine_fixture.h"
#include "engine/marked_model.h"
#include "kernels/cuda/open_gpu.h"

namespace pagoda::gpu_test {
namespace {

using engine::FinishReason;
using engine::Part;
using kv::memory::Element;

class GpuKvRange : public testing::TestWithParam<std::tuple<Element, Part, bool>> {};

TEST_P(GpuKvRange, WhatIsNotFiniteEndsItsRequestIsNotPublishedAndTouchesNobodyElse) {
  REQUIRE_GPU();
  const auto [element, part, beyond_all] = GetParam();
  const SeededModel seeded({.heads = 8, .kv_heads = 2, .head_dim = 64});
  const engine::MarkedModel model(seeded, part,
                                  beyond_all ? engine::kBeyondAll : engine::kBeyondFp16);
  // Prompts are computed in chunks: the marked token is not in the last one.
  const FixtureOptions options = {.batched_tokens = 24, .kv_cache_dtype = element};
  GpuEngineFixture quiet(model, options);
  const auto alone = quiet.submit(engine::marked_request(model.config(), false));
  quiet.run();
  ASSERT_EQ(alone->answers[0].reason, FinishReason::kLength) << alone->answers[0].message;

  GpuEngineFixture gpu(model, options);
  const auto marked = gpu.submit(engine::marked_request(model.config(), true));
  const auto beside = gpu.submit(engine::marked_request(model.config(), false));
  gpu.run();
  expect_same(*beside, *alone, 1);
  const auto again = gpu.submit(engine::marked_request(model.config(), true));
  gpu.run();
  if (!beyond_all && element == Element::kBF16) {
    EXPECT_EQ(marked->answers[0].reason, FinishReason::kLength) << marked->answers[0].message;
    expect_same(*again, *marked, 2);
    return;
  }
  for (const auto& ended : {marked, again}) {
    EXPECT_EQ(ended->answers[0].reason, FinishReason::kError);
    EXPECT_NE(ended->answers[0].message.find("not finite"), std::string::npos)
        << ended->answers[0].message;
    EXPECT_TRUE(ended->answers[0].tokens.empty());
    EXPECT_LE(ended->answers[0].record.prompt_tokens_cached, engine::kMarkedAt);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GpuKvRange,
    testing::Combine(testing::Values(Element::kBF16, Element::kF16, Element::kE4M3, Element::kE5M2),
                     testing::Values(Part::kQuery, Part::kKey, Part::kValue), testing::Bool()));
// What one dimension of a row of integers has is spread over others.
INSTANTIATE_TEST_SUITE_P(Integers, GpuKvRange,
                         testing::Combine(testing::Values(Element::kInt8, Element::kInt4),
                                          testing::Values(Part::kQuery, Part::kKey, Part::kValue),
                                          testing::Values(true)));

}  // namespace
}  // namespace pagoda::gpu_test
