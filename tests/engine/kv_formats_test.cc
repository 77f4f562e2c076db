// Every pair of formats that keys and values may have: the same answers to the last bit, however
// the rows that they read were computed, copied or found.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <tuple>

#include "engine/engine_ways.h"
#include "engine/kv_element_names.h"
#include "model/seeded_model.h"
#include "temporary_folder.h"

namespace pagoda::engine {
namespace {

using kv::memory::Element;
using kv::memory::Elements;

constexpr std::uint32_t kFormatBlock = 8;
constexpr std::size_t kFormatPrompt = 37;  // four blocks and five tokens
constexpr std::uint32_t kFormatOutput = 12;

BackendOptions format_options(Elements elements) {
  BackendOptions options;
  options.block_tokens = kFormatBlock;
  options.kv_cache_dtype = elements;
  return options;
}

// Two layers, one with a window that is shorter than the prompts.
model::ModelShape windowed_shape() {
  model::ModelShape shape = model::small_shape(gguf::TensorType::kQ8_0, false);
  shape.window = 11;
  return shape;
}

Request format_request(std::vector<TokenId> prompt, float temperature, std::uint64_t seed) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = temperature;
  request.sampling.seed = seed;
  request.sampling.logprobs = 2;
  request.end.max_tokens = kFormatOutput;
  request.end.ignore_eos = true;
  return request;
}

// Returns the first tokens of the text, another token than the text's next one, and more.
std::vector<TokenId> branch(const std::vector<TokenId>& text, std::size_t shared, std::size_t own) {
  std::vector<TokenId> prompt(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(shared));
  const std::uint32_t next = shared < text.size() ? text[shared].value() : 0;
  for (std::size_t i = 0; i < own; ++i) {
    prompt.push_back(TokenId((next + 1 + static_cast<std::uint32_t>(i) * 7) % 96));
  }
  return prompt;
}

// A prompt; what shares it up to a block's end, and up to the inside of one; the prompt itself for
// three sequences, which share its partial block; the prompt scored, which computes it again.
std::vector<Request> prompt_requests(const model::Config& config) {
  const std::vector<TokenId> text = model::random_tokens(config, kFormatPrompt, 11);
  std::vector<Request> requests = {format_request(text, 0, 1),
                                   format_request(branch(text, 32, 8), 0.9f, 2),
                                   format_request(branch(text, 21, 9), 0.9f, 3),
                                   format_request(text, 0.9f, 4), format_request(text, 0, 5)};
  requests[2].sampling.top_p = 0.8f;
  requests[3].sampling.n = 3;
  requests[4].sampling.prompt_logprobs = 1;
  return requests;
}

// Goes on from inside the output, whose rows were computed one by one.
Request output_request(const Request& first, const std::vector<TokenId>& output) {
  std::vector<TokenId> text = first.prompt;
  text.insert(text.end(), output.begin(), output.end());
  return format_request(branch(text, first.prompt.size() + 6, 3), 0, 6);
}

void expect_every_way(const model::ModelParts& model, const kernels::KernelSet& set,
                      Elements elements) {
  const WayRunner runner(model, set, format_options(elements));
  std::vector<Request> requests = prompt_requests(model.config);
  std::vector<Answered> alone = runner.alone(requests);
  requests.push_back(output_request(requests[0], alone[0].outputs[0].tokens));
  alone.push_back(runner.alone({requests.back()}).front());

  const WayAnswers warm =
      runner.expect({.name = "warm", .one_by_one = true, .rounds = 2}, requests, alone);
  const std::array<std::uint64_t, 6> cached = {0, 32, 21, kFormatPrompt - 1, 0, kFormatPrompt + 6};
  for (std::size_t i = 0; i < cached.size(); ++i) {
    EXPECT_EQ(warm.rounds[0][i].outputs[0].record.prompt_tokens_cached, cached[i]) << i;
  }
  EXPECT_GT(warm.duplicates, 0u) << "blocks that the scored prompt computed again";
  runner.expect({.name = "chunked", .step_tokens = 7}, requests, alone);
  runner.expect({.name = "batched", .threads = 2, .rounds = 2}, requests, alone);
  const WayAnswers preempted =
      runner.expect({.name = "preempted", .step_tokens = 24, .blocks = 11}, requests, alone);
  EXPECT_GT(preempted.preemptions, 0u);
}

class KvFormatPairs : public testing::TestWithParam<std::tuple<Element, Element>> {
 protected:
  static Elements elements() { return {std::get<0>(GetParam()), std::get<1>(GetParam())}; }
};

TEST_P(KvFormatPairs, EveryWayGivesTheSameAnswersByIntegerKernels) {
  static const model::SeededModel kModel(windowed_shape());
  expect_every_way(kModel, fastest_set(kernels::Numerics::kInt8Bf16), elements());
}

TEST_P(KvFormatPairs, EveryWayGivesTheSameAnswersByFp32Kernels) {
  static const model::SeededModel kModel(model::small_shape(gguf::TensorType::kBF16, true));
  expect_every_way(kModel, fastest_set(kernels::Numerics::kFp32), elements());
}

INSTANTIATE_TEST_SUITE_P(Pairs, KvFormatPairs,
                         testing::Combine(testing::ValuesIn(kElementsOfKv),
                                          testing::ValuesIn(kElementsOfKv)),
                         [](const auto& pair) {
                           return element_name(std::get<0>(pair.param)) + "_" +
                                  element_name(std::get<1>(pair.param));
                         });

// Prompts whose end is inside a block, at its end, and one token behind it; the last shares what
// the first one generated.
std::vector<Request> stored_requests(const model::Config& config, const WayRunner& runner) {
  std::vector<Request> requests;
  for (const std::size_t tokens : {37u, 40u, 41u, 19u}) {
    requests.push_back(format_request(model::random_tokens(config, tokens, 20 + tokens),
                                      tokens % 2 == 0 ? 0.9f : 0.0f, tokens));
  }
  requests[2].sampling.n = 2;
  const std::vector<Answered> first = runner.alone({requests[0]});
  requests.push_back(output_request(requests[0], first[0].outputs[0].tokens));
  return requests;
}

class KvFormatInStores : public testing::TestWithParam<std::tuple<Element, Element>> {
 protected:
  KvFormatInStores()
      : runner_(model_, fastest_set(kernels::Numerics::kInt8Bf16),
                format_options({std::get<0>(GetParam()), std::get<1>(GetParam())})),
        requests_(stored_requests(model_.config(), runner_)),
        alone_(runner_.alone(requests_)) {}

  // Asks what should come from the store, once what the pool has is gone.
  void expect_loaded(StoredEngine& engine, const std::string& where) {
    engine.backend().cache().clear();
    const std::vector<Answered> again = engine.ask(requests_);
    expect_same_outputs(again, alone_, where);
    for (std::size_t i = 0; i < again.size(); ++i) {
      const std::uint64_t whole = (requests_[i].prompt.size() - 1) / kFormatBlock * kFormatBlock;
      EXPECT_GE(again[i].outputs[0].record.prompt_tokens_cached, whole) << where << ", " << i;
    }
    EXPECT_GE(tokens_loaded(again), 32u + 32 + 40 + 16) << where;
  }

  const model::SeededModel model_{windowed_shape()};
  const WayRunner runner_;
  const std::vector<Request> requests_;
  const std::vector<Answered> alone_;
};

TEST_P(KvFormatInStores, PagesComeBackFromMainMemory) {
  auto backend = runner_.create_for_store();
  const auto store = open_host_store(*backend);
  StoredEngine engine(std::move(backend), *store);
  expect_same_outputs(engine.ask(requests_), alone_, "computed");
  expect_loaded(engine, "from main memory");
}

TEST_P(KvFormatInStores, PagesComeBackFromADiskAndAfterARestart) {
  const TemporaryFolder folder;
  for (const char* const where : {"from disk", "after a restart"}) {
    auto backend = runner_.create_for_store();
    const auto store = open_disk_store(*backend, folder.path());
    StoredEngine engine(std::move(backend), *store);
    if (where == std::string("from disk")) {
      expect_same_outputs(engine.ask(requests_), alone_, "computed");
    }
    expect_loaded(engine, where);
    EXPECT_TRUE(store->flush(30'000'000'000).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, KvFormatInStores,
                         testing::Values(std::tuple(Element::kF32, Element::kF32),
                                         std::tuple(Element::kF16, Element::kF16),
                                         std::tuple(Element::kBF16, Element::kBF16),
                                         std::tuple(Element::kE4M3, Element::kE4M3),
                                         std::tuple(Element::kE5M2, Element::kE5M2),
                                         std::tuple(Element::kInt8, Element::kInt8),
                                         std::tuple(Element::kInt4, Element::kInt4),
                                         std::tuple(Element::kInt8, Element::kInt4),
                                         std::tuple(Element::kBF16, Element::kInt8)),
                         [](const auto& pair) {
                           return element_name(std::get<0>(pair.param)) + "_" +
                                  element_name(std::get<1>(pair.param));
                         });

// All pairs in one folder, many of which have pages of the same size: each finds its own alone.
TEST(KvFormatsInOneFolder, NoPageIsReadInAnotherFormatThanItWasWrittenIn) {
  const TemporaryFolder folder;
  const model::SeededModel model(model::small_shape(gguf::TensorType::kBF16, true));
  const std::vector<Request> requests = {
      format_request(model::random_tokens(model.config(), kFormatPrompt, 11), 0, 1),
      format_request(model::random_tokens(model.config(), 24, 12), 0.9f, 2)};
  std::set<std::string> rows_ids;
  std::set<std::uint64_t> page_sizes;
  std::vector<std::vector<Answered>> alone;
  for (const bool is_written : {false, true}) {
    std::size_t pairs = 0;
    for (const Element keys : kElementsOfKv) {
      for (const Element values : kElementsOfKv) {
        const std::string name = element_name(keys) + "/" + element_name(values);
        const WayRunner runner(model, fastest_set(kernels::Numerics::kInt8Bf16),
                               format_options({keys, values}));
        if (!is_written) alone.push_back(runner.alone(requests));
        auto backend = runner.create_for_store();
        EXPECT_EQ(rows_ids.insert(backend->rows_id()).second, !is_written) << name;
        page_sizes.insert(backend->page_layout().page_bytes());
        const auto store = open_disk_store(*backend, folder.path());
        StoredEngine engine(std::move(backend), *store);
        const std::vector<Answered> answers = engine.ask(requests);
        expect_same_outputs(answers, alone[pairs++], name);
        EXPECT_EQ(tokens_loaded(answers) > 0, is_written) << name;
        EXPECT_EQ(answers[0].outputs[0].record.prompt_tokens_cached, is_written ? 32u : 0u) << name;
        EXPECT_TRUE(store->flush(30'000'000'000).ok());
      }
    }
  }
  EXPECT_LT(page_sizes.size(), rows_ids.size() / 2) << "many pairs share a size of pages";
}

}  // namespace
}  // namespace pagoda::engine
