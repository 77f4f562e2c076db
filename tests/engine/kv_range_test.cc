// Queries, keys and values that are out of range of the cache's element end their request with an
// error: none of them is published, no request beside them notices, and none is left out in
// silence. The tests run on every kernel set and for every element.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "engine/engine_fixture.h"
#include "engine/marked_model.h"
#include "engine/single_sequence.h"
#include "model/seeded_model.h"

namespace pagoda::engine {
namespace {

using kernels::KernelSet;
using kv::memory::Element;

struct Case {
  const KernelSet* set;
  Element element;
  Part part;
  bool beyond_all;
};
void PrintTo(const Case& c, std::ostream* out) {
  const char* const elements[] = {"fp32", "fp16", "bf16", "e4m3", "e5m2", "int8"};
  const char* const parts[] = {"query", "key", "value"};
  *out << c.set->name << " " << elements[static_cast<int>(c.element)] << " "
       << parts[static_cast<int>(c.part)] << (c.beyond_all ? " beyond all" : " beyond fp16");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const KernelSet* const set : kernels::available_sets()) {
    for (const Element element : {Element::kF32, Element::kF16, Element::kBF16, Element::kE4M3,
                                  Element::kE5M2, Element::kInt8}) {
      for (const Part part : {Part::kQuery, Part::kKey, Part::kValue}) {
        for (const bool beyond_all : {false, true}) {
          // Rows of integers reach further than the smaller marks, and not beyond all of them.
          if (element == Element::kInt8 && !beyond_all) continue;
          cases.push_back({set, element, part, beyond_all});
        }
      }
    }
  }
  return cases;
}

constexpr std::uint32_t kChunk = 12;  // the marked token is not in a prompt's last chunk

class KvRange : public testing::TestWithParam<Case> {
 protected:
  EngineFixture fixture() const { return fixture(model_); }
  EngineFixture fixture(const MarkedModel& model) const {
    BackendOptions options;
    options.threads = 2;
    options.block_tokens = 8;
    options.kv_cache_dtype = GetParam().element;
    options.kv_bytes = 8 << 20;
    options.scheduler.sequences_max = 4;
    options.scheduler.batched_tokens_max = kChunk;
    return {model.config(), model.weights(), options, *GetParam().set};
  }
  Result<SingleOutput> generate_single_with(const MarkedModel& model, bool kv_cache) {
    model::DecoderOptions options;
    options.rows_max = kChunk;
    options.kv_cache_dtype = GetParam().element;
    model::Decoder decoder(model.config(), model.weights(), *GetParam().set, pool_, options);
    const Request same = marked_request(model.config(), true);
    SingleRequest request;
    request.prompt = same.prompt;
    request.tokens_max = *same.end.max_tokens;
    request.context_max = model.config().context;
    request.kv_cache = kv_cache;
    request.sampling = same.sampling;
    return generate_single(decoder, request, clock_);
  }
  // True: the marked value is out of range of the element.
  static bool is_out_of_range() {
    return GetParam().beyond_all || GetParam().element == Element::kF16 ||
           GetParam().element == Element::kE4M3 || GetParam().element == Element::kE5M2;
  }

  const Excess excess_ = GetParam().beyond_all ? kBeyondAll : kBeyondFp16;
  const MarkedModel model_{stories(), GetParam().part, excess_};
  ThreadPool pool_{2};
  SteadyClock clock_;
};

TEST_P(KvRange, WhatIsNotFiniteEndsItsRequestIsNotPublishedAndTouchesNobodyElse) {
  EngineFixture quiet = fixture();
  const auto alone = quiet.submit(marked_request(model_.config(), false));
  quiet.run();
  ASSERT_EQ(alone->answers[0].reason, FinishReason::kLength);

  EngineFixture together = fixture();
  const auto marked = together.submit(marked_request(model_.config(), true));
  const auto beside = together.submit(marked_request(model_.config(), false));
  together.run();
  EXPECT_EQ(beside->answers[0].tokens, alone->answers[0].tokens);
  EXPECT_TRUE(same_scores(beside->answers[0].scores, alone->answers[0].scores));
  const auto again = together.submit(marked_request(model_.config(), true));
  together.run();
  if (!is_out_of_range()) {
    EXPECT_EQ(marked->answers[0].reason, FinishReason::kLength) << marked->answers[0].message;
    EXPECT_EQ(again->answers[0].tokens, marked->answers[0].tokens);
    return;
  }
  for (const auto& ended : {marked, again}) {
    EXPECT_EQ(ended->answers[0].reason, FinishReason::kError);
    EXPECT_NE(ended->answers[0].message.find("not finite"), std::string::npos)
        << ended->answers[0].message;
    EXPECT_TRUE(ended->answers[0].tokens.empty());
    EXPECT_LE(ended->answers[0].record.prompt_tokens_cached, kMarkedAt);
  }
}

// In a model of one layer only the marked token itself sees its query: all logits that tokens are
// sampled by are finite.
TEST_P(KvRange, ARequestAloneEndsAsTheEngineEndsIt) {
  const model::SeededModel one_layer({.layers = 1, .vocabulary = 96});
  const MarkedModel shallow(one_layer, GetParam().part, excess_);
  for (const MarkedModel* const model : {&model_, &shallow}) {
    EngineFixture engine = fixture(*model);
    const auto served = engine.submit(marked_request(model->config(), true));
    engine.run();
    const TestSink::Given& expected = served->answers[0];
    ASSERT_EQ(expected.reason == FinishReason::kError, is_out_of_range()) << expected.message;
    for (const bool kv_cache : {true, false}) {
      const Result<SingleOutput> alone = generate_single_with(*model, kv_cache);
      ASSERT_EQ(alone.ok(), !is_out_of_range()) << (alone.ok() ? "" : alone.error().message);
      if (alone.ok()) {
        EXPECT_EQ(alone.value().tokens, expected.tokens);
      } else {
        EXPECT_EQ(alone.error().message, expected.message);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, KvRange, testing::ValuesIn(all_cases()));

}  // namespace
}  // namespace pagoda::engine
