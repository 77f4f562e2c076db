// KV policies at their limits: windows, sinks and budgets that are less than a block or no multiple
// of one, and prompts that are shorter than what is kept, as long, and one token longer.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "engine/engine_ways.h"
#include "engine/kv_element_names.h"
#include "model/seeded_model.h"
#include "speculate/recorded_drafter.h"
#include "temporary_folder.h"

namespace pagoda::engine {
namespace {

using kv::memory::Element;

constexpr std::uint32_t kBoundedBlock = 8;
constexpr std::uint32_t kBoundedOutput = 14;

struct BoundedCase {
  const char* policy;
  Element element;
  bool has_windows = false;  // of the model's own, in every other layer
  bool preempts = true;      // in a pool that holds one sequence and little more
};
void PrintTo(const BoundedCase& c, std::ostream* out) {
  *out << c.policy << " " << element_name(c.element);
}

std::string case_name(const BoundedCase& c) {
  std::string name = c.policy;
  std::ranges::replace_if(
      name, [](char sign) { return std::isalnum(sign) == 0; }, '_');
  return name + "_" + element_name(c.element) + (c.has_windows ? "_windows" : "");
}

model::ModelShape bounded_shape(bool has_windows) {
  model::ModelShape shape = model::small_shape(gguf::TensorType::kQ8_0, !has_windows);
  if (has_windows) shape.window = 6;
  return shape;
}

Request bounded_request(std::vector<TokenId> prompt, const kv::KvPolicy& policy) {
  Request request;
  request.sampling.seed = prompt.size();
  if (prompt.size() % 3 == 1) request.sampling.temperature = 0.9f;
  request.prompt = std::move(prompt);
  request.sampling.logprobs = 2;
  request.end.max_tokens = kBoundedOutput;
  request.end.ignore_eos = true;
  request.kv_policy = policy;
  return request;
}

// Prompts of one text that are shorter than what the policy keeps, as long, longer by one token,
// and so long that blocks leave it before the output begins; the longest for three sequences.
std::vector<Request> requests_around(const kv::KvPolicy& policy, const model::Config& config) {
  const std::uint64_t kept = policy.tokens_kept_max();
  const std::vector<TokenId> text = model::random_tokens(config, 3 * kept + 40, 31);
  std::vector<Request> requests;
  for (const std::uint64_t tokens :
       {std::max<std::uint64_t>(kept, 2) - 1, kept, kept + 1, 2 * kept + 19, 2 * kept + 29}) {
    requests.push_back(bounded_request(
        {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(tokens)}, policy));
  }
  requests.back().sampling.temperature = 0.8f;
  requests.back().sampling.n = 3;
  return requests;
}

speculate::RecordedDrafter drafter_of_answers(const std::vector<Request>& requests,
                                              const std::vector<Answered>& alone) {
  speculate::RecordedDrafter drafter({.wrong = 0.2, .vocabulary = 96, .seed = 3});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (const TestSink::Given& given : alone[i].outputs) {
      std::vector<TokenId> sequence = requests[i].prompt;
      sequence.insert(sequence.end(), given.tokens.begin(), given.tokens.end());
      drafter.record(std::move(sequence));
    }
  }
  return drafter;
}

bool drops_blocks(const Request& request) {
  const std::uint64_t prompt = request.prompt.size();
  return request.kv_policy->selects_pages() &&
         request.kv_policy->tokens_dropped({prompt, prompt + kBoundedOutput}, kBoundedBlock) > 0;
}

class BoundedContexts : public testing::TestWithParam<BoundedCase> {
 protected:
  BoundedContexts() { alone_ = runner_.alone(requests_); }

  static BackendOptions backend_options() {
    BackendOptions options;
    options.block_tokens = kBoundedBlock;
    options.kv_cache_dtype = GetParam().element;
    return options;
  }

  const kv::KvPolicy policy_ = kv::KvPolicy::parse(GetParam().policy).value();
  const model::SeededModel model_{bounded_shape(GetParam().has_windows)};
  const WayRunner runner_{model_, fastest_set(kernels::Numerics::kInt8Bf16), backend_options()};
  const std::vector<Request> requests_ = requests_around(policy_, model_.config());
  std::vector<Answered> alone_;
};

TEST_P(BoundedContexts, EveryWayGivesTheSameAnswers) {
  const WayAnswers warm =
      runner_.expect({.name = "warm", .one_by_one = true, .rounds = 2}, requests_, alone_);
  std::uint64_t cached = 0;
  for (const Answered& answered : warm.rounds[1]) {
    cached += answered.outputs[0].record.prompt_tokens_cached;
  }
  EXPECT_GT(cached, 0u);
  runner_.expect({.name = "chunked", .step_tokens = 7, .rounds = 2}, requests_, alone_);
  runner_.expect({.name = "batched", .threads = 2}, requests_, alone_);
  const std::uint64_t longest = requests_.back().prompt.size() + kBoundedOutput;
  const WayAnswers preempted = runner_.expect(
      {.name = "preempted", .step_tokens = 24, .blocks = longest / kBoundedBlock + 1}, requests_,
      alone_);
  EXPECT_EQ(preempted.preemptions > 0, GetParam().preempts);
}

// Sequences that drop blocks get no drafts, all others do.
TEST_P(BoundedContexts, DraftsChangeNothing) {
  speculate::RecordedDrafter drafter = drafter_of_answers(requests_, alone_);
  for (const std::uint32_t step_tokens : {512u, 13u}) {
    const WayAnswers drafted = runner_.expect(
        {.name = "drafted", .step_tokens = step_tokens, .rounds = 2, .drafter = &drafter},
        requests_, alone_);
    for (const std::vector<Answered>& round : drafted.rounds) {
      for (std::size_t i = 0; i < requests_.size(); ++i) {
        if (!drops_blocks(requests_[i])) continue;
        for (const TestSink::Given& given : round[i].outputs) {
          EXPECT_EQ(given.record.drafts.tokens, 0u) << i;
        }
      }
    }
    if (!std::ranges::all_of(requests_, drops_blocks)) {
      EXPECT_GT(drafted.counters.drafts.accepted, 0u);
    }
  }
}

TEST_P(BoundedContexts, PagesThatCameBackChangeNothing) {
  const TemporaryFolder folder;
  for (const bool is_disk : {false, true}) {
    auto backend = runner_.create_for_store();
    const auto store =
        is_disk ? open_disk_store(*backend, folder.path()) : open_host_store(*backend);
    StoredEngine engine(std::move(backend), *store);
    std::uint64_t loaded = 0;
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = requests_.size(); i-- > 0;) {
        const std::vector<Answered> answered = engine.ask({requests_[i]});
        expect_same_outputs(answered, {alone_[i]}, is_disk ? "disk" : "main memory");
        loaded += tokens_loaded(answered);
        engine.backend().cache().clear();
      }
    }
    EXPECT_GT(loaded, 0u);
  }
}

std::vector<BoundedCase> bounded_cases() {
  std::vector<BoundedCase> cases;
  for (const Element element : {Element::kBF16, Element::kInt8, Element::kInt4}) {
    for (const char* const policy :
         {"window:1", "window:5", "window:8", "window:13", "streaming:3+4", "streaming:8+8",
          "streaming:5+13", "streaming:13+3", "streaming:1+1"}) {
      cases.push_back({policy, element, false, false});
    }
    // A budget of less than a block, of a block, of no multiple; recent tokens of all but one.
    for (const char* const policy : {"h2o:5+2", "h2o:8+7", "h2o:21+3", "h2o:21+20", "snapkv:5+2",
                                     "snapkv:16+8", "snapkv:21+3/7", "snapkv:21+20"}) {
      cases.push_back({policy, element});
    }
  }
  for (const char* const policy : {"window:13", "streaming:5+13"}) {
    cases.push_back({policy, Element::kInt8, true, false});
  }
  cases.push_back({"h2o:21+3", Element::kInt8, true, false});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Limits, BoundedContexts, testing::ValuesIn(bounded_cases()),
                         [](const auto& instance) { return case_name(instance.param); });

// An answer is that of the full context as long as its last row sees everything, and no longer.
TEST(BoundedContext, IsTheFullOneUpToItsLimitAndNoFurther) {
  const model::SeededModel model(bounded_shape(false));
  const std::uint64_t prompt = 20;
  // Rows are computed of all tokens but the last.
  const std::uint64_t rows = prompt + kBoundedOutput - 1;
  struct Row {
    kv::KvPolicy policy;
    bool is_full;
  };
  const auto window = [](std::uint64_t tokens, std::uint32_t sinks) {
    return kv::KvPolicy{.window = static_cast<std::uint32_t>(tokens) - sinks, .sinks = sinks};
  };
  const auto selecting = [](const char* type, std::uint64_t budget) {
    return kv::KvPolicy::parse(type + std::to_string(budget) + "+3").value();
  };
  for (const Element element : {Element::kBF16, Element::kInt8, Element::kInt4}) {
    BackendOptions options;
    options.block_tokens = kBoundedBlock;
    options.kv_cache_dtype = element;
    const WayRunner runner(model, fastest_set(kernels::Numerics::kInt8Bf16), options);
    Request request = bounded_request(model::random_tokens(model.config(), prompt, 7), {});
    const std::vector<Answered> full = runner.alone({request});
    for (const Row& row :
         {Row{window(rows, 0), true}, Row{window(rows, 5), true}, Row{window(rows - 1, 0), false},
          Row{window(rows - 1, 5), false}, Row{selecting("snapkv:", prompt), true},
          Row{selecting("snapkv:", prompt - 1), false}, Row{selecting("h2o:", rows), true},
          Row{selecting("h2o:", prompt), false}, Row{selecting("h2o:", prompt - 1), false}}) {
      request.kv_policy = row.policy;
      for (const std::uint32_t step_tokens : {512u, 7u}) {
        const WayAnswers bounded =
            runner.go({.name = "bounded", .step_tokens = step_tokens}, {request});
        const bool is_full =
            same_scores(bounded.rounds[0][0].outputs[0].scores, full[0].outputs[0].scores);
        EXPECT_EQ(is_full, row.is_full) << row.policy.name() << " " << element_name(element);
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::engine
