// A draft model: how right its tokens are, what it keeps in its own cache, and who finds that.
#include <gtest/gtest.h>

#include "engine/draft_model.h"
#include "engine/engine_fixture.h"
#include "engine/list_constraint.h"
#include "model/quantised_copy.h"

namespace pagoda::engine {
namespace {

using speculate::DraftMethod;

DraftModelParts parts_of(const model::TestModel& model) {
  return {.name = "draft", .config = &model.config(), .weights = &model.weights()};
}

BackendOptions with_draft(const model::TestModel& draft) {
  BackendOptions options;
  options.threads = 2;
  options.kv_bytes = 8 << 20;
  options.scheduler.sequences_max = 4;
  options.scheduler.batched_tokens_max = 64;
  options.speculation.methods = speculate::MethodSet(DraftMethod::kDraftModel);
  options.speculation.weighs_costs = false;
  options.speculation.tokens_max = 4;
  options.draft_model = parts_of(draft);
  return options;
}

Request request_of(std::size_t prompt_tokens, std::uint32_t output_tokens) {
  Request request;
  request.prompt = model::random_tokens(stories().config(), prompt_tokens, 5);
  request.end.max_tokens = output_tokens;
  request.end.ignore_eos = true;
  return request;
}

struct DraftedAnswer {
  TestSink::Given given;
  DraftCounts drafts;
};

DraftedAnswer answer_drafted(const Request& request, const BackendOptions& options) {
  EngineFixture fixture(stories(), options, *kernels::available_sets().back());
  const auto heard = fixture.submit(request);
  fixture.run();
  return {heard->answers[0], fixture.core().counters().drafts};
}

TestSink::Given answer_without(const Request& request) {
  BackendOptions options = with_draft(stories());
  options.draft_model.reset();
  options.speculation = {};
  return answer_drafted(request, options).given;
}

// A model that drafts for itself computes the same rows: whatever a token is chosen by, the model
// must choose it by the same. A wrong position, seed, penalty or mask shows as a rejected draft.
struct Choice {
  const char* name;
  SamplingParams sampling;
  bool has_grammar = false;
};
void PrintTo(const Choice& choice, std::ostream* out) { *out << choice.name; }

class DraftsOfTheModelItself : public testing::TestWithParam<Choice> {};

TEST_P(DraftsOfTheModelItself, AreAllAccepted) {
  Request request = request_of(40, 60);
  request.sampling = GetParam().sampling;
  request.sampling.seed = 77;
  if (GetParam().has_grammar) request.constraint = list_constraint(stories().config());
  const DraftedAnswer drafted = answer_drafted(request, with_draft(stories()));
  EXPECT_EQ(drafted.given.tokens, answer_without(request).tokens);
  EXPECT_EQ(drafted.drafts.accepted, drafted.drafts.tokens);
  EXPECT_GE(drafted.drafts.accepted * 10, drafted.given.tokens.size() * 7) << "4 of 5 tokens";
}

INSTANTIATE_TEST_SUITE_P(
    Choices, DraftsOfTheModelItself,
    testing::Values(Choice{"Likeliest", {}}, Choice{"Drawn", {.temperature = 0.9f}},
                    Choice{"TopP", {.temperature = 1.2f, .top_k = 30, .top_p = 0.8f}},
                    Choice{"Penalties",
                           {.temperature = 0.8f,
                            .repetition_penalty = 1.3f,
                            .presence_penalty = 0.5f,
                            .frequency_penalty = 0.4f}},
                    Choice{"Bias", {.logit_bias = {{TokenId(7), 3.0f}, {TokenId(9), -4.0f}}}},
                    Choice{"Grammar", {.temperature = 0.7f}, true}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(DraftModel, ThatIsWrongChangesNothing) {
  const model::QuantisedCopy copy("stories260K.gguf", gguf::TensorType::kQ4_0);
  const model::TestModel draft(copy.path());
  for (const float temperature : {0.0f, 1.0f}) {
    Request request = request_of(30, 100);
    request.sampling.temperature = temperature;
    request.sampling.logprobs = 2;
    const DraftedAnswer drafted = answer_drafted(request, with_draft(draft));
    const TestSink::Given plain = answer_without(request);
    EXPECT_EQ(drafted.given.tokens, plain.tokens);
    EXPECT_TRUE(same_scores(drafted.given.scores, plain.scores));
    EXPECT_GT(drafted.drafts.accepted, 0u);
    EXPECT_LT(drafted.drafts.accepted, drafted.drafts.tokens);
  }
}

// A long prompt is caught up with over several steps, and drafts come then.
TEST(DraftModel, CatchesUpWithALongPrompt) {
  const Request request = request_of(400, 80);
  const DraftedAnswer drafted = answer_drafted(request, with_draft(stories()));
  EXPECT_EQ(drafted.given.tokens, answer_without(request).tokens);
  EXPECT_GT(drafted.drafts.accepted, 0u);
  EXPECT_EQ(drafted.drafts.accepted, drafted.drafts.tokens);
}

// Layers of the model that are left out are not the draft model's.
TEST(DraftModel, KeepsWhatItsModelKeepsWhereItCan) {
  using kv::memory::Element;
  using kv::memory::Elements;
  const Request request = request_of(40, 60);
  BackendOptions options = with_draft(stories());
  options.kv_cache_dtype.keys = Element::kInt8;
  options.kv_cache_dtype.values = Element::kE4M3;
  options.kv_cache_dtype.skip_layers = {4};
  const auto elements = [&] {
    EngineFixture fixture(stories(), options, *kernels::available_sets().back());
    return fixture.backend().draft_backend()->page_layout().elements;
  };
  EXPECT_EQ(elements(), Elements(Element::kInt8, Element::kE4M3));
  const TestSink::Given drafted = answer_drafted(request, options).given;
  BackendOptions plain = options;
  plain.draft_model.reset();
  plain.speculation = {};
  EXPECT_EQ(drafted.tokens, answer_drafted(request, plain).given.tokens);
  // A latent is key and value at once: it keeps the default.
  const auto created = [](const BackendOptions& of_both) {
    return CpuBackend::create(stories().config(), stories().weights(),
                              *kernels::available_sets().back(), of_both);
  };
  const model::TestModel latent(model::test_model_path("arch_deepseek2.gguf"));
  options = with_draft(latent);
  options.kv_cache_dtype = Elements(Element::kInt8, Element::kE4M3);
  const auto beside = created(options);
  ASSERT_TRUE(beside.ok()) << beside.error().message;
  EXPECT_NE(beside.value()->draft_backend()->page_layout().elements.keys, Element::kInt8);
}

TEST(DraftModel, DraftsNothingBehindItsContext) {
  model::Config config = stories().config();
  config.context = 64;
  BackendOptions options = with_draft(stories());
  options.draft_model->config = &config;
  const Request request = request_of(70, 20);
  const DraftedAnswer drafted = answer_drafted(request, options);
  EXPECT_EQ(drafted.given.tokens, answer_without(request).tokens);
  EXPECT_EQ(drafted.drafts.tokens, 0u);
}

// DraftCache is a draft model of its own, over a cache of so many blocks of 16 tokens.
class DraftCache {
 public:
  explicit DraftCache(std::uint64_t blocks) {
    BackendOptions options;
    options.threads = 1;
    options.kv_bytes = 1 << 20;
    const auto& set = *kernels::available_sets().back();
    const auto probe = CpuBackend::create(stories().config(), stories().weights(), set, options);
    options.kv_bytes = blocks * probe.value()->page_layout().page_bytes();
    backend_ = CpuBackend::create(stories().config(), stories().weights(), set, options).value();
    model_.emplace(DraftModelOptions{.space = "draft",
                                     .vocabulary = stories().config().vocabulary,
                                     .context_tokens = 512,
                                     .rows_max = 64},
                   backend_->cache(), backend_->runner());
  }

  DraftModel& model() { return *model_; }
  DraftedSequence sequence(std::string_view salt, std::uint32_t owner = 0) {
    return DraftedSequence(*model_, model_->scope(salt, kv::OwnerId(owner)));
  }
  void compute(DraftedSequence& drafted, const std::vector<TokenId>& tokens) {
    while (model_->tokens_missing(drafted, tokens).value_or(1) > 1) {
      DraftModel::Job job = {.drafted = &drafted, .tokens = tokens};
      model_->draft({&job, 1}, 64, clock_);
    }
  }
  std::vector<TokenId> draft(DraftedSequence& drafted, const std::vector<TokenId>& tokens) {
    std::vector<TokenId> draft;
    draft.reserve(speculate::kDraftTokensMax);
    if (!model_->tokens_missing(drafted, tokens)) return draft;
    DraftModel::Job job = {.drafted = &drafted,
                           .tokens = tokens,
                           .drafts = 3,
                           .sampling = SamplingState({}, tokens),
                           .draft = &draft};
    model_->draft({&job, 1}, 0, clock_);
    return draft;
  }

 private:
  SteadyClock clock_;
  std::unique_ptr<CpuBackend> backend_;
  std::optional<DraftModel> model_;
};

TEST(DraftModel, FindsAPromptUnderItsOwnSaltAlone) {
  DraftCache cache(64);
  const auto tokens = model::random_tokens(stories().config(), 50, 3);
  {
    DraftedSequence first = cache.sequence("mine", 4);
    EXPECT_EQ(cache.model().tokens_missing(first, tokens), 50u);
    cache.compute(first, tokens);
  }
  DraftedSequence again = cache.sequence("mine", 4);
  EXPECT_EQ(cache.model().tokens_missing(again, tokens), 2u) << "three blocks of 16 were found";
  DraftedSequence other = cache.sequence("theirs", 5);
  EXPECT_EQ(cache.model().tokens_missing(other, tokens), 50u);
  DraftedSequence open = cache.sequence("");
  EXPECT_EQ(cache.model().tokens_missing(open, tokens), 50u);
}

TEST(DraftModel, ForgetsWhatATenantIsRidOf) {
  for (const bool retires : {false, true}) {
    DraftCache cache(64);
    const auto tokens = model::random_tokens(stories().config(), 50, 3);
    for (const std::uint32_t owner : {4u, 5u}) {
      DraftedSequence drafted = cache.sequence(std::to_string(owner), owner);
      cache.compute(drafted, tokens);
    }
    if (retires) {
      cache.model().retire(kv::OwnerId(4));
    } else {
      cache.model().clear(kv::OwnerId(4));
    }
    DraftedSequence gone = cache.sequence("4", 4);
    EXPECT_EQ(cache.model().tokens_missing(gone, tokens), 50u);
    DraftedSequence kept = cache.sequence("5", 5);
    EXPECT_EQ(cache.model().tokens_missing(kept, tokens), 2u);
  }
}

// Sequences that are not drafted for give way; one that finds no room gets no draft.
TEST(DraftModel, TakesTheRoomOfSequencesThatWait) {
  DraftCache cache(8);
  const auto tokens = model::random_tokens(stories().config(), 100, 3);
  const auto other_tokens = model::random_tokens(stories().config(), 100, 8);
  DraftedSequence first = cache.sequence("a");
  cache.compute(first, tokens);
  const std::vector<TokenId> draft = cache.draft(first, tokens);
  EXPECT_EQ(draft.size(), 3u);
  DraftedSequence second = cache.sequence("b");
  cache.compute(second, other_tokens);
  EXPECT_EQ(cache.draft(second, other_tokens).size(), 3u);
  EXPECT_GT(cache.model().tokens_missing(first, tokens), 50u) << "most were evicted";
  DraftedSequence longest = cache.sequence("c");
  const auto too_long = model::random_tokens(stories().config(), 160, 8);
  EXPECT_EQ(cache.draft(longest, too_long).size(), 0u);
  cache.compute(first, tokens);
  EXPECT_EQ(cache.draft(first, tokens), draft);
}

// Two sequences that do not fit together do not stand in each other's way for ever.
TEST(DraftModel, LeavesTheRoomToOthersWhereItFindsNone) {
  DraftCache cache(8);
  const auto tokens = model::random_tokens(stories().config(), 100, 3);
  const auto other_tokens = model::random_tokens(stories().config(), 100, 8);
  DraftedSequence first = cache.sequence("a");
  DraftedSequence second = cache.sequence("b");
  const SteadyClock clock;
  bool has_caught_up = false;
  for (int step = 0; step < 30 && !has_caught_up; ++step) {
    std::vector<DraftModel::Job> jobs;
    for (auto& [drafted, wanted] : {std::pair{&first, &tokens}, {&second, &other_tokens}}) {
      const auto missing = cache.model().tokens_missing(*drafted, *wanted);
      has_caught_up = has_caught_up || missing == 1u;
      if (missing) jobs.push_back({.drafted = drafted, .tokens = *wanted});
    }
    cache.model().draft(jobs, 32, clock);
  }
  EXPECT_TRUE(has_caught_up);
}

TEST(DraftModel, DraftsNothingBehindTokensThatItDoesNotHave) {
  DraftCache cache(64);
  auto tokens = model::random_tokens(stories().config(), 20, 3);
  DraftedSequence drafted = cache.sequence("");
  EXPECT_TRUE(cache.model().tokens_missing(drafted, tokens).has_value());
  tokens.push_back(TokenId(stories().config().vocabulary));
  EXPECT_FALSE(cache.model().tokens_missing(drafted, tokens).has_value());
}

// A draft model with other token ids has rows of other lengths: nothing may name a token there.
TEST(DraftModel, WithOtherIdsIsToldNoTokens) {
  const std::vector<TokenId> ends = {TokenId(500)};
  SamplingState state({.temperature = 0.7f,
                       .repetition_penalty = 1.5f,
                       .logit_bias = {{TokenId(501), 2.0f}},
                       .seed = 9},
                      ends, StopCriteria({.min_tokens = 4}, ends));
  state.constrain(*list_constraint(stories().config()));
  ASSERT_FALSE(state.stop_criteria().forbidden_after(0).empty());
  const SamplingState drafts = state.for_drafts(true, false);
  EXPECT_TRUE(drafts.options().logit_bias.empty());
  EXPECT_TRUE(drafts.seen().entries().empty());
  EXPECT_FALSE(drafts.constraint().has_value());
  EXPECT_TRUE(drafts.stop_criteria().forbidden_after(0).empty());
  EXPECT_EQ(drafts.options().seed, 9u);
}

// The target takes one of the draft's tokens and goes on otherwise: rows of the rest are not used.
TEST(DraftModel, WritesOverRowsOfTokensThatWereNotTaken) {
  DraftCache cache(64);
  auto tokens = model::random_tokens(stories().config(), 45, 3);
  DraftedSequence drafted = cache.sequence("");
  cache.compute(drafted, tokens);
  const std::vector<TokenId> draft = cache.draft(drafted, tokens);
  tokens.push_back(draft[0]);
  tokens.push_back(TokenId(draft[1].value() == 5 ? 6 : 5));
  EXPECT_EQ(cache.model().tokens_missing(drafted, tokens), 1u);
  DraftCache fresh(64);
  DraftedSequence alone = fresh.sequence("");
  fresh.compute(alone, tokens);
  EXPECT_EQ(cache.draft(drafted, tokens), fresh.draft(alone, tokens));
}

TEST(DraftModel, ItsTimeIsAPartOfThatOfDrafts) {
  EngineFixture fixture(stories(), with_draft(stories()), *kernels::available_sets().back());
  fixture.submit(request_of(20, 30));
  fixture.run();
  const Counters& counters = fixture.core().counters();
  EXPECT_GT(counters.draft_model_seconds, 0);
  EXPECT_GT(counters.draft_seconds, counters.draft_model_seconds);
}

// Free memory is what is left once both models' weights are packed.
TEST(DraftModel, IsPackedBeforeKvTakesItsShareOfMemory) {
  BackendOptions options = with_draft(stories());
  bool is_packed = false;
  options.draft_model->on_pack = [&](std::size_t, std::size_t) { is_packed = true; };
  const kernels::KernelSet& kernels = *kernels::available_sets().back();
  ASSERT_TRUE(CpuBackend::create(stories().config(), stories().weights(), kernels, options).ok());
  ASSERT_TRUE(std::exchange(is_packed, false)) << "this kernel set packs weights";
  options.kv_bytes = 1;  // holds no block
  EXPECT_FALSE(CpuBackend::create(stories().config(), stories().weights(), kernels, options).ok());
  EXPECT_TRUE(is_packed);
}

}  // namespace
}  // namespace pagoda::engine
