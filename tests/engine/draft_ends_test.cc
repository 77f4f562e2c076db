// Sequences that end inside a draft, whoever drafted it and however tokens are chosen, end where
// they end without drafts; and drafts take nothing from anybody where the KV cache is full.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <tuple>

#include "engine/engine_fixture.h"
#include "speculate/recorded_drafter.h"
#include "structured/grammar.h"
#include "structured/matcher.h"

namespace pagoda::engine {
namespace {

using speculate::DraftMethod;

constexpr std::uint32_t kDraftedOutput = 40;
constexpr TokenId kGrammarEnd = TokenId(0);

// Two texts, each of which leaves no choice behind its first byte, and a digit between them.
std::shared_ptr<const structured::Matcher> forced_grammar() {
  const std::uint32_t vocabulary = stories().config().vocabulary;
  std::vector<std::string> bytes(vocabulary);  // others than single bytes are never allowed
  for (std::uint32_t i = 1; i < 128; ++i) bytes[i] = std::string(1, static_cast<char>(i));
  const std::vector<TokenId> ends = {kGrammarEnd};
  structured::GrammarBuilder builder;
  const auto texts = builder.alternatives(
      {builder.literal("abcdefghijklmnop"), builder.literal("qrstuvwxyzABCDEF")});
  const auto digit = builder.regex("[0-9]").value();
  const auto grammar = builder.finish(builder.sequence({texts, digit, texts, digit}));
  return std::make_shared<const structured::Matcher>(
      grammar.value(), structured::MaskVocabulary::build(bytes, ends, vocabulary));
}

enum class Choice : std::uint8_t { kGreedy, kPenalties, kTopP, kGrammar };
constexpr std::array kChoices = {Choice::kGreedy, Choice::kPenalties, Choice::kTopP,
                                 Choice::kGrammar};

enum class End : std::uint8_t { kEndToken, kStopToken, kText, kLength, kLeastThenStop };
constexpr std::array kEnds = {End::kEndToken, End::kStopToken, End::kText, End::kLength,
                              End::kLeastThenStop};

// EndsAtToken ends the text with token number `at`, counted from 1.
class EndsAtToken final : public OutputWatch {
 public:
  explicit EndsAtToken(std::size_t at) : at_(at) {}
  bool ends_with(std::uint32_t, TokenId) override { return ++seen_ == at_; }

 private:
  std::size_t at_;
  std::size_t seen_ = 0;
};

// `repeats`: few tokens come again and again, so that the text itself is a source of drafts.
Request chosen_request(Choice choice, bool repeats) {
  Request request;
  request.prompt = model::random_tokens(stories().config(), 19, 5);
  request.end.max_tokens = kDraftedOutput;
  request.end.ignore_eos = true;
  request.sampling.logprobs = 2;
  request.sampling.seed = 8;
  if (repeats) {
    request.sampling.logit_bias = {
        {TokenId(300), 30.0f}, {TokenId(301), 30.0f}, {TokenId(302), 30.0f}};
  }
  if (choice != Choice::kGreedy) request.sampling.temperature = 0.8f;
  if (choice == Choice::kPenalties) {
    request.sampling.repetition_penalty = 1.2f;
    request.sampling.presence_penalty = 0.4f;
    request.sampling.frequency_penalty = 0.3f;
  }
  if (choice == Choice::kTopP) request.sampling.top_p = 0.7f;
  if (choice == Choice::kGrammar) request.constraint = forced_grammar();
  return request;
}

// The engine of a method, or of none. Its model's end tokens are `end_tokens`.
BackendOptions method_options(std::optional<DraftMethod> method,
                              const std::vector<TokenId>& end_tokens) {
  BackendOptions options;
  options.threads = 1;
  options.block_tokens = 4;
  options.kv_bytes = 4 << 20;
  options.scheduler.sequences_max = 4;
  options.scheduler.batched_tokens_max = 64;
  options.end_tokens = end_tokens;
  if (!method) return options;
  options.speculation.methods = speculate::MethodSet(*method);
  options.speculation.weighs_costs = false;
  options.speculation.lookup_min = 1;
  options.speculation.suffix_factor = 8;
  if (method == DraftMethod::kDraftModel) {
    options.draft_model = {
        .name = "draft", .config = &stories().config(), .weights = &stories().weights()};
  }
  return options;
}

// Returns the tokens of every node of the prefix tree, with those before them.
std::set<std::vector<TokenId>> published_by(EngineFixture& fixture) {
  std::set<std::vector<TokenId>> published;
  const kv::PrefixTree& tree = fixture.backend().cache().tree();
  for (std::uint32_t i = 0; i < tree.node_numbers(); ++i) {
    if (!tree.is_live(kv::NodeId(i))) continue;
    std::vector<TokenId> tokens;
    for (kv::NodeId node(i); !tree.is_root(node); node = tree.parent(node)) {
      tokens.insert(tokens.begin(), tree.tokens(node).begin(), tree.tokens(node).end());
    }
    published.insert(tokens);
  }
  return published;
}

struct EndedAnswer {
  TestSink::Given given;
  std::uint64_t output_tokens = 0;  // that the engine counted
  std::set<std::vector<TokenId>> published;
};

// Asks behind another request, from whose output some methods learn; nullptr: as the first.
EndedAnswer answer_behind(const Request* before, const Request& request,
                          std::optional<DraftMethod> method,
                          const std::vector<TokenId>& end_tokens = {}) {
  EngineFixture fixture(stories(), method_options(method, end_tokens),
                        *kernels::available_sets().back());
  if (before != nullptr) {
    fixture.submit(*before);
    fixture.run();
  }
  const std::uint64_t counted = fixture.core().counters().output_tokens;
  const auto heard = fixture.submit(request);
  fixture.run();
  return {heard->answers[0], fixture.core().counters().output_tokens - counted,
          published_by(fixture)};
}

bool learns_from_outputs(DraftMethod method) {
  return method == DraftMethod::kTree || method == DraftMethod::kSuffix;
}

// Lets the request end with token number `at` of what it would say, counted from 1.
Request ended_at(const Request& request, End end, std::size_t at, const std::vector<TokenId>& all) {
  Request ended = request;
  switch (end) {
    case End::kEndToken:
      ended.end.ignore_eos = false;
      break;
    case End::kStopToken:
      ended.end.stop_token_ids = {all[at - 1]};
      break;
    case End::kText:
      ended.watch = std::make_shared<EndsAtToken>(at);
      break;
    case End::kLength:
      ended.end.max_tokens = static_cast<std::uint32_t>(at);
      break;
    case End::kLeastThenStop:
      ended.end.stop_token_ids = {all[at - 1]};
      ended.end.min_tokens = static_cast<std::uint32_t>(at - 1);
      break;
  }
  return ended;
}

class EndsInsideDrafts : public testing::TestWithParam<std::tuple<DraftMethod, Choice>> {};

TEST_P(EndsInsideDrafts, AreWhereTheyAreWithout) {
  const auto [method, choice] = GetParam();
  Request request = chosen_request(choice, method == DraftMethod::kNgram);
  const std::vector<TokenId> all = answer_behind(nullptr, request, std::nullopt).given.tokens;
  ASSERT_GE(all.size(), 30u);
  request.prediction = std::make_shared<speculate::PredictedText>(all);
  const Request* const before = learns_from_outputs(method) ? &request : nullptr;
  std::uint64_t accepted = 0;
  std::uint64_t ends_inside = 0;
  for (const End end : kEnds) {
    for (const std::size_t at : {std::size_t{2}, std::size_t{9}, std::size_t{16}, std::size_t{23},
                                 all.size() - 1, all.size()}) {
      const std::vector<TokenId> end_tokens =
          end == End::kEndToken ? std::vector{all[at - 1]} : std::vector<TokenId>();
      const EndedAnswer plain =
          answer_behind(before, ended_at(request, end, at, all), std::nullopt, end_tokens);
      const EndedAnswer drafted =
          answer_behind(before, ended_at(request, end, at, all), method, end_tokens);
      const std::string where =
          "end " + std::to_string(static_cast<int>(end)) + " at " + std::to_string(at);
      EXPECT_EQ(drafted.given.tokens, plain.given.tokens) << where;
      EXPECT_TRUE(same_scores(drafted.given.scores, plain.given.scores)) << where;
      EXPECT_EQ(drafted.given.reason, plain.given.reason) << where;
      EXPECT_EQ(drafted.given.message, plain.given.message) << where;
      EXPECT_EQ(drafted.output_tokens, plain.output_tokens) << where;
      EXPECT_EQ(drafted.published, plain.published) << where;
      const DraftCounts& drafts = drafted.given.record.drafts;
      EXPECT_LT(drafts.accepted, drafted.given.tokens.size()) << where;
      accepted += drafts.accepted;
      ends_inside += end == End::kText && drafts.tokens > drafts.accepted ? 1 : 0;
    }
  }
  // Without a grammar nothing is forced.
  const bool has_drafts = method != DraftMethod::kConstraint || choice == Choice::kGrammar;
  EXPECT_EQ(accepted > 0, has_drafts);
  EXPECT_EQ(ends_inside > 0, has_drafts) << "a draft went on behind the end of the text";
}

std::string choice_name(Choice choice) {
  constexpr std::array kNames = {"Greedy", "Penalties", "TopP", "Grammar"};
  return kNames[static_cast<std::size_t>(choice)];
}

constexpr std::array kMethods = {DraftMethod::kPrediction, DraftMethod::kTree,
                                 DraftMethod::kSuffix,     DraftMethod::kNgram,
                                 DraftMethod::kConstraint, DraftMethod::kDraftModel};

INSTANTIATE_TEST_SUITE_P(Methods, EndsInsideDrafts,
                         testing::Combine(testing::ValuesIn(kMethods), testing::ValuesIn(kChoices)),
                         [](const auto& instance) {
                           return std::string(speculate::method_name(std::get<0>(instance.param))) +
                                  choice_name(std::get<1>(instance.param));
                         });

// No method drafts for a sequence that drops pages: its scores follow rows in order.
TEST(DraftsUnderPolicies, AreNoneWherePagesAreSelected) {
  for (const char* const name : {"h2o:24+4", "snapkv:16+4", "streaming:4+20", "h2o:200"}) {
    const kv::KvPolicy policy = kv::KvPolicy::parse(name).value();
    const bool drops =
        policy.selects_pages() && policy.tokens_dropped({19, 19 + kDraftedOutput}, 4) > 0;
    std::uint64_t drafted_tokens = 0;
    for (const DraftMethod method : kMethods) {
      Request request = chosen_request(Choice::kGrammar, false);
      request.kv_policy = policy;
      const std::vector<TokenId> all = answer_behind(nullptr, request, std::nullopt).given.tokens;
      request.prediction = std::make_shared<speculate::PredictedText>(all);
      const Request* const before = learns_from_outputs(method) ? &request : nullptr;
      const EndedAnswer drafted = answer_behind(before, request, method);
      EXPECT_EQ(drafted.given.tokens, all) << name << ", " << speculate::method_name(method);
      drafted_tokens += drafted.given.record.drafts.tokens;
    }
    EXPECT_EQ(drafted_tokens == 0, drops) << name;
  }
}

// What a step of an engine leaves behind, as far as somebody may notice.
struct StepTrace {
  std::uint64_t output_tokens = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t evicted = 0;
  std::uint64_t free = 0;
  std::uint64_t finished = 0;
  std::size_t running = 0;
  std::size_t waiting = 0;

  bool operator==(const StepTrace&) const = default;
};
void PrintTo(const StepTrace& trace, std::ostream* out) {
  *out << trace.output_tokens << " tokens, " << trace.preemptions << " preemptions, "
       << trace.evicted << " evicted, " << trace.free << " free, " << trace.finished
       << " finished, " << trace.running << " running, " << trace.waiting << " waiting";
}

struct FullCache {
  const char* name;
  std::uint64_t blocks;
  std::uint32_t block_tokens;
  std::uint32_t step_tokens;
  const char* policy = "full";
};
void PrintTo(const FullCache& cache, std::ostream* out) { *out << cache.name; }

// More requests than the pool holds: the first fill it, the others wait; the later ones share the
// prompts of the first.
std::vector<Request> crowding_requests(const FullCache& cache) {
  std::vector<Request> requests;
  for (std::uint32_t i = 0; i < 9; ++i) {
    Request request;
    request.prompt = model::random_tokens(stories().config(), 14 + i % 3 * 9, 40 + i % 6);
    request.end.max_tokens = 20 + i;
    request.end.ignore_eos = true;
    request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.9f;
    request.sampling.seed = i;
    request.sampling.n = i % 4 == 3 ? 2 : 1;
    request.priority = i % 4 == 2 ? -1 : 0;
    request.kv_policy = kv::KvPolicy::parse(cache.policy).value();
    requests.push_back(request);
  }
  return requests;
}

struct CrowdedRun {
  std::vector<StepTrace> steps;
  std::vector<std::vector<TestSink::Given>> answers;
  DraftCounts drafts;
};

CrowdedRun run_crowded(const FullCache& cache, const std::vector<Request>& requests,
                       speculate::Drafter* drafter) {
  BackendOptions options;
  options.threads = 1;
  options.block_tokens = cache.block_tokens;
  options.kv_bytes = 1 << 20;
  options.scheduler.sequences_max = 5;
  options.scheduler.batched_tokens_max = cache.step_tokens;
  const kernels::KernelSet& set = *kernels::available_sets().back();
  const auto probe =
      CpuBackend::create(stories().config(), stories().weights(), set, options).value();
  options.kv_bytes = cache.blocks * probe->page_layout().page_bytes();
  EngineFixture fixture(stories().config(), stories().weights(), options, set, drafter);
  CrowdedRun run;
  std::vector<std::shared_ptr<TestSink>> heard;
  for (bool goes_on = true; goes_on || heard.size() < requests.size();) {
    // Four come at once, each of the others four steps behind the one before it.
    while (heard.size() < requests.size() && run.steps.size() + 12 >= 4 * heard.size()) {
      heard.push_back(fixture.submit(requests[heard.size()]));
    }
    goes_on = fixture.step();
    const Counters& counters = fixture.core().counters();
    const kv::Cache& kv_cache = fixture.backend().cache();
    run.steps.push_back({.output_tokens = counters.output_tokens,
                         .preemptions = counters.preemptions,
                         .evicted = kv_cache.stats().blocks_evicted,
                         .free = kv_cache.pool().blocks_free(),
                         .finished = counters.requests_finished,
                         .running = fixture.core().scheduler().running().size(),
                         .waiting = fixture.core().scheduler().tasks_waiting()});
  }
  for (const auto& sink : heard) run.answers.push_back(sink->answers);
  run.drafts = fixture.core().counters().drafts;
  return run;
}

speculate::RecordedDrafter drafter_of_crowd(const std::vector<Request>& requests,
                                            const CrowdedRun& plain, double wrong) {
  speculate::RecordedDrafter drafter({.wrong = wrong, .vocabulary = 512, .seed = 2});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (const TestSink::Given& given : plain.answers[i]) {
      std::vector<TokenId> sequence = requests[i].prompt;
      sequence.insert(sequence.end(), given.tokens.begin(), given.tokens.end());
      // Tokens behind the answer's end: drafts are as long as they may be up to it.
      sequence.insert(sequence.end(), 64, TokenId(9));
      drafter.record(std::move(sequence));
    }
  }
  return drafter;
}

class DraftsInAFullCache : public testing::TestWithParam<FullCache> {};

// Drafts of which no token is right gain nothing; so every step must leave what it leaves without
// them: who runs, who waits, who was preempted, what was evicted and what is free.
TEST_P(DraftsInAFullCache, TakeNothingFromAnybodyInAnyStep) {
  const std::vector<Request> requests = crowding_requests(GetParam());
  const CrowdedRun plain = run_crowded(GetParam(), requests, nullptr);
  ASSERT_GT(plain.steps.back().evicted, 0u);
  for (const double wrong : {1.0, 0.3, 0.0}) {
    speculate::RecordedDrafter drafter = drafter_of_crowd(requests, plain, wrong);
    const CrowdedRun drafted = run_crowded(GetParam(), requests, &drafter);
    EXPECT_GT(drafted.drafts.tokens, 0u);
    EXPECT_EQ(drafted.drafts.accepted > 0, wrong < 1);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      for (std::size_t a = 0; a < plain.answers[i].size(); ++a) {
        const TestSink::Given& given = drafted.answers[i][a];
        EXPECT_EQ(given.tokens, plain.answers[i][a].tokens);
        EXPECT_EQ(given.reason, plain.answers[i][a].reason);
        if (wrong < 1) continue;
        EXPECT_EQ(given.record.prompt_tokens_cached,
                  plain.answers[i][a].record.prompt_tokens_cached);
      }
    }
    if (wrong < 1) continue;
    ASSERT_EQ(drafted.steps.size(), plain.steps.size());
    for (std::size_t i = 0; i < plain.steps.size(); ++i) {
      ASSERT_EQ(drafted.steps[i], plain.steps[i]) << "step " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pools, DraftsInAFullCache,
                         testing::Values(FullCache{"FewBlocks", 24, 4, 64},
                                         FullCache{"FewTokensOfAStep", 24, 4, 9},
                                         FullCache{"OneTokenBlocks", 90, 1, 64},
                                         FullCache{"LargeBlocks", 7, 16, 64},
                                         FullCache{"Windows", 16, 4, 16, "window:9"},
                                         FullCache{"Sinks", 20, 4, 16, "streaming:3+10"}),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace pagoda::engine
