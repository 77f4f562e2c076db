// Whatever happens around a request, its tokens and log-probabilities are those it gets alone: on
// every kernel set, for every KV element, for weights of every kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "default_model.h"
#include "engine/engine_fixture.h"
#include "engine/request_mix.h"
#include "engine/single_sequence.h"
#include "model/quantised_copy.h"
#include "model/seeded_model.h"
#include "speculate/recorded_drafter.h"

namespace pagoda::engine {
namespace {

// KernelConfig is a kernel set and a KV element.
struct KernelConfig {
  const kernels::KernelSet* set = kernels::available_sets().back();
  std::optional<model::KvCacheDtype> element = {};
};

BackendOptions backend_options(std::uint64_t kv_blocks, const model::ModelParts& model,
                               std::uint32_t block_tokens, const KernelConfig& kernel_config = {}) {
  BackendOptions options;
  options.threads = 2;
  if (kernel_config.element) options.kv_cache_dtype = *kernel_config.element;
  options.block_tokens = block_tokens;
  options.scheduler.sequences_max = 8;
  options.scheduler.batched_tokens_max = 64;
  // Only the decoder knows the page size: the test asks one with next to no memory.
  options.kv_bytes = 1 << 20;
  const auto probe = CpuBackend::create(model.config, model.weights, *kernel_config.set, options);
  options.kv_bytes = kv_blocks * probe.value()->page_layout().page_bytes();
  return options;
}

// Returns what each request gets alone: one at a time, nothing cached, whole prompts.
std::vector<std::shared_ptr<TestSink>> answers_alone(const model::ModelParts& model,
                                                     BackendOptions options,
                                                     const std::vector<Request>& requests,
                                                     const KernelConfig& kernel_config = {}) {
  options.threads = 1;
  options.prefix_caching = false;
  options.kv_bytes = 64 << 20;
  options.scheduler.batched_tokens_max = 512;
  std::vector<std::shared_ptr<TestSink>> answers;
  EngineFixture fixture(model.config, model.weights, options, *kernel_config.set);
  for (const Request& request : requests) {
    answers.push_back(fixture.submit(request));
    fixture.run();
  }
  return answers;
}

std::uint64_t preemptions_of(const std::vector<std::shared_ptr<TestSink>>& answers) {
  std::uint64_t sum = 0;
  for (const auto& heard : answers) {
    for (const TestSink::Given& given : heard->answers) sum += given.record.preemptions;
  }
  return sum;
}

// Way says how a mix of requests is computed: threads, and tokens of a step.
struct Way {
  std::size_t threads;
  std::uint32_t rows;
  bool drafts = false;  // what each request answers alone is drafted, every fifth token wrong
};
constexpr Way kWays[] = {{1, 9}, {2, 64, true}, {3, 9, true}, {5, 64}, {8, 9, true}};
constexpr Way kFewWays[] = {{3, 64, true}, {8, 9}};

// Drafts what the requests answer alone: right up to the first wrong token.
speculate::RecordedDrafter drafter_of(const model::ModelParts& model,
                                      const std::vector<Request>& requests,
                                      const std::vector<std::shared_ptr<TestSink>>& alone) {
  speculate::RecordedDrafter drafter(
      {.wrong = 0.2, .vocabulary = model.config.vocabulary, .seed = 5});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (const TestSink::Given& given : alone[i]->answers) {
      std::vector<TokenId> sequence = requests[i].prompt;
      sequence.insert(sequence.end(), given.tokens.begin(), given.tokens.end());
      drafter.record(std::move(sequence));
    }
  }
  return drafter;
}

// Says whether sequences of the request become so long that their KV policy drops pages of them.
bool drops_pages(const Request& request, std::uint32_t block_tokens) {
  if (!request.kv_policy || !request.kv_policy->selects_pages()) return false;
  const std::uint64_t prompt = request.prompt.size();
  return request.kv_policy->tokens_dropped({prompt, prompt + request.end.max_tokens.value()},
                                           block_tokens) > 0;
}

void expect_no_drafts(const TestSink& sink) {
  for (const TestSink::Given& given : sink.answers) EXPECT_EQ(given.record.drafts.tokens, 0u);
}

// Joins counts blocks of the same tokens that were computed twice.
struct Joins {
  std::uint64_t count = 0;
  std::uint64_t different = 0;
};

// Runs all requests at once, in small chunks, by threads of every number; the second round finds
// the first one cached. Returns the number of preemptions.
std::uint64_t run_mix(const model::ModelParts& model, const std::vector<Request>& requests,
                      BackendOptions options, const KernelConfig& kernel_config = {},
                      std::span<const Way> ways = kWays) {
  const auto alone = answers_alone(model, options, requests, kernel_config);
  Joins joins;
  options.on_deduplicate = [&joins](std::span<const std::byte> mine,
                                    std::span<const std::byte> existing) {
    ++joins.count;
    if (!std::ranges::equal(mine, existing)) ++joins.different;
  };
  std::uint64_t preemptions = 0;
  std::uint64_t accepted = 0;
  std::uint64_t rejected = 0;
  speculate::RecordedDrafter drafter = drafter_of(model, requests, alone);
  for (const Way& way : ways) {
    options.threads = way.threads;
    options.scheduler.batched_tokens_max = way.rows;
    EngineFixture fixture(model.config, model.weights, options, *kernel_config.set,
                          way.drafts ? &drafter : nullptr);
    for (int round = 0; round < 2; ++round) {
      std::vector<std::shared_ptr<TestSink>> got;
      for (const Request& request : requests) got.push_back(fixture.submit(request));
      // This request is cancelled: it comes and goes among the others.
      const auto gone = fixture.submit(requests.front());
      for (int i = 0; i < 4; ++i) fixture.step();
      fixture.cancel(requests.size() * (static_cast<std::uint64_t>(round) + 1) +
                     static_cast<std::uint64_t>(round) + 1);
      fixture.run();
      EXPECT_EQ(gone->answers[0].reason, FinishReason::kCancelled);
      expect_same(got, alone);
      preemptions += preemptions_of(got);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (drops_pages(requests[i], options.block_tokens)) expect_no_drafts(*got[i]);
      }
    }
    const DraftCounts& drafts = fixture.core().counters().drafts;
    accepted += drafts.accepted;
    rejected += drafts.tokens - drafts.accepted;
  }
  const bool all_drop = std::ranges::all_of(
      requests, [&](const Request& request) { return drops_pages(request, options.block_tokens); });
  EXPECT_EQ(accepted > 0, !all_drop);
  EXPECT_EQ(rejected > 0, !all_drop);
  EXPECT_GT(joins.count, 0u);
  EXPECT_EQ(joins.different, 0u) << "of " << joins.count << " blocks computed twice";
  return preemptions;
}

TEST(EngineInvariance, StoriesInABatch) {
  const model::TestModel model(model::test_model_path("stories260K.gguf"));
  EXPECT_EQ(
      run_mix(model, draw_requests(model.config(), 14, 90, 24), backend_options(400, model, 16)),
      0u);
}

TEST(EngineInvariance, StoriesWithTooLittleMemory) {
  const model::TestModel model(model::test_model_path("stories260K.gguf"));
  EXPECT_GT(
      run_mix(model, draw_requests(model.config(), 14, 40, 40), backend_options(60, model, 4)), 0u);
}

// A smaller model drafts, with a KV cache of its own that has too little room for all sequences.
TEST(EngineInvariance, ADraftModelBesideTheModel) {
  const model::TestModel model(model::test_model_path("stories260K.gguf"));
  const model::QuantisedCopy copy("stories260K.gguf", gguf::TensorType::kQ4_0);
  const model::TestModel draft(copy.path());
  struct Row {
    std::uint64_t blocks;
    std::uint32_t block_tokens;
    std::uint32_t new_tokens;
    bool preempts;
  };
  constexpr Way kModelWays[] = {{1, 9}, {2, 64}, {5, 24}};
  for (const Row& row : {Row{800, 16, 24, false}, Row{120, 4, 40, true}}) {
    BackendOptions options = backend_options(row.blocks, model, row.block_tokens);
    options.draft_model = {.name = "draft", .config = &draft.config(), .weights = &draft.weights()};
    options.speculation.methods =
        speculate::MethodSet(speculate::DraftMethod::kDraftModel, speculate::DraftMethod::kTree);
    options.speculation.weighs_costs = false;
    options.speculation.tokens_max = 5;
    const auto requests = draw_requests(model.config(), 14, 60, row.new_tokens);
    EXPECT_EQ(run_mix(model, requests, options, {}, kModelWays) > 0, row.preempts);
  }
}

TEST(EngineInvariance, AlternatingWindows) {
  const model::TestModel model(model::test_model_path("tiny_window.gguf"));
  EXPECT_GT(
      run_mix(model, draw_requests(model.config(), 10, 50, 20), backend_options(90, model, 4)), 0u);
}

// KV policies that requests have, each another than the one before it.
enum class Policies : std::uint8_t { kNone, kMasks, kSelections };

struct MixCase {
  model::ModelCase model;
  KernelConfig kernel_config;
  std::uint64_t kv_blocks = 70;  // memory is short: some requests are preempted
  Policies policies = Policies::kNone;
};

void draw_policies(Policies kind, std::vector<Request>& requests) {
  const std::vector<kv::KvPolicy> masks = {
      {.window = 9}, {}, {.window = 12, .sinks = 3}, {.window = 7, .sinks = 18}, {.window = 1}};
  std::vector<kv::KvPolicy> selections;
  for (const char* const name :
       {"h2o:16+4", "snapkv:12+5", "full", "h2o:9+7", "snapkv:24+3/7", "h2o:30+1"}) {
    selections.push_back(kv::KvPolicy::parse(name).value());
  }
  const std::vector<kv::KvPolicy>& policies = kind == Policies::kMasks ? masks : selections;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    // Every second one is that of the request before it: they share.
    requests[i].kv_policy = policies[i / 2 % policies.size()];
  }
}
void PrintTo(const MixCase& c, std::ostream* out) {
  *out << c.model.title() << " on " << c.kernel_config.set->name;
  if (c.policies != Policies::kNone) *out << " with policies";
  if (!c.kernel_config.element) return;
  const auto elements = c.kernel_config.element->elements(kv::memory::Element::kBF16);
  *out << ", elements " << static_cast<int>(elements.keys) << " and "
       << static_cast<int>(elements.values);
}

using Mixes = std::vector<MixCase>;

model::ModelCase seeded_case(const std::string& name, gguf::TensorType type, bool qk_norm) {
  return {name, model::small_shape(type, qk_norm)};
}
model::ModelCase quantised_case(const char* name, gguf::TensorType type) {
  return {.name = name, .quantised = type};
}

void add_models(const kernels::KernelSet* set, Mixes& mixes) {
  using gguf::TensorType;
  using kv::memory::Element;
  for (const Element element : {Element::kF32, Element::kF16, Element::kBF16}) {
    mixes.push_back({{"stories260K"}, {set, element}});
  }
  mixes.push_back({seeded_case("llama Q4_0", TensorType::kQ4_0, false), {set, Element::kBF16}});
  mixes.push_back({seeded_case("llama Q8_0", TensorType::kQ8_0, false), {set, Element::kF32}});
  mixes.push_back({seeded_case("llama Q4_K", TensorType::kQ4_K, false), {set, Element::kF16}});
  mixes.push_back({seeded_case("qwen3 BF16", TensorType::kBF16, true), {set, Element::kBF16}});
  mixes.push_back({seeded_case("qwen3 Q6_K", TensorType::kQ6_K, true), {set, Element::kF16}});
  // Seven KV cache groups, so that a block of tokens takes seven pages.
  mixes.push_back({{"arch_gemma3"}, {set, Element::kBF16}, 220});
  // Experts, sinks and windows; experts with a shared one.
  mixes.push_back({{"arch_gpt_oss"}, {set, Element::kBF16}, 220});
  mixes.push_back({{"arch_qwen2moe"}, {set, Element::kF32}});
  // Pages of two layouts; layers that attend to the rows of others.
  mixes.push_back({{"arch_gemma4"}, {set, Element::kBF16}, 120});
  mixes.push_back({{"arch_gemma4_shared"}, {set, Element::kF32}, 120});
  mixes.push_back({{"arch_gemma4_moe"}, {set, Element::kF16}, 120});
  // Latents, a page of which holds no values.
  mixes.push_back({{"arch_deepseek2"}, {set, Element::kF32}});
  mixes.push_back({{"arch_deepseek3"}, {set, Element::kBF16}});
  // Layers of every kind, quantised.
  mixes.push_back({quantised_case("arch_gemma3", TensorType::kQ8_0), {set, Element::kBF16}, 220});
  mixes.push_back({quantised_case("arch_gpt_oss", TensorType::kQ8_0), {set, Element::kBF16}, 220});
  mixes.push_back({quantised_case("arch_qwen3moe", TensorType::kQ4_0), {set, Element::kF16}});
  mixes.push_back({quantised_case("arch_deepseek3", TensorType::kQ8_0), {set, Element::kBF16}});
}

// Integers and eight-bit floats, of every kind of layer.
void add_elements(const kernels::KernelSet* set, Mixes& mixes) {
  using gguf::TensorType;
  using kv::memory::Element;
  mixes.push_back({seeded_case("llama Q4_1", TensorType::kQ4_1, false), {set, Element::kInt8}});
  mixes.push_back({seeded_case("llama Q4_1", TensorType::kQ4_1, false), {set, Element::kInt4}});
  mixes.push_back({seeded_case("qwen3 Q8_0", TensorType::kQ8_0, true),
                   {set, kv::memory::Elements(Element::kInt8, Element::kInt4)}});
  mixes.push_back({{"arch_gpt_oss"}, {set, Element::kE4M3}, 220});
  mixes.push_back({{"arch_deepseek3"}, {set, Element::kInt8}});
}

void add_policies(const kernels::KernelSet* set, Mixes& mixes) {
  using gguf::TensorType;
  using kv::memory::Element;
  using kv::memory::Elements;
  const model::ModelCase qwen3 = seeded_case("qwen3 Q8_0", TensorType::kQ8_0, true);
  // Masks, over layers of every kind and integers.
  mixes.push_back({{"stories260K"}, {set, Element::kBF16}, 70, Policies::kMasks});
  mixes.push_back({{"arch_gpt_oss"}, {set, Element::kBF16}, 220, Policies::kMasks});
  mixes.push_back({{"arch_deepseek3"}, {set, Element::kInt8}, 70, Policies::kMasks});
  mixes.push_back({qwen3, {set, Elements(Element::kInt8, Element::kInt4)}, 70, Policies::kMasks});
  // Policies that select pages, over every element and layers of every kind.
  for (const Elements elements : {Elements(Element::kF32),
                                  {Element::kF16},
                                  {Element::kBF16},
                                  {Element::kE4M3},
                                  {Element::kE5M2},
                                  {Element::kInt8},
                                  {Element::kInt4},
                                  {Element::kInt8, Element::kInt4}}) {
    mixes.push_back({qwen3, {set, elements}, 70, Policies::kSelections});
  }
  const model::ModelCase windows = seeded_case("windows", TensorType::kQ8_0, false);
  mixes.push_back({windows, {set, Element::kBF16}, 120, Policies::kSelections});
  mixes.push_back({{"arch_gpt_oss"}, {set, Element::kBF16}, 220, Policies::kSelections});
  mixes.push_back({{"arch_deepseek3"}, {set, Element::kInt8}, 70, Policies::kSelections});
  mixes.push_back({{"arch_gemma4_shared"}, {set, Element::kBF16}, 120, Policies::kSelections});
}

Mixes all_mixes() {
  Mixes mixes;
  // On x86 the emulated tiles have the vector functions of avx512, and its bits.
  const bool has_vector_tiles =
      std::ranges::any_of(kernels::available_sets(), [](const kernels::KernelSet* set) {
        return set->name == "avx512";
      });
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    // The set is plain and slow; its bits are those of the other sets of its numerics.
    if (set == &kernels::ref_set(kernels::Numerics::kInt8Bf16)) continue;
    if (set->name == "tiles" && has_vector_tiles) continue;  // nor are these others
    add_models(set, mixes);
    add_elements(set, mixes);
    add_policies(set, mixes);
  }
  return mixes;
}

// Sequences that dropped pages are preempted too, and compute their rows again in the same steps.
TEST(EngineInvariance, SelectedPagesWithTooLittleMemory) {
  const model::TestModel model(model::test_model_path("stories260K.gguf"));
  struct Row {
    const char* policy;
    std::uint64_t blocks;
  };
  for (const Row& row : {Row{"h2o:40+6", 32}, Row{"snapkv:20+6", 60}}) {
    std::vector<Request> requests = draw_requests(model.config(), 14, 40, 40);
    for (Request& request : requests) request.kv_policy = kv::KvPolicy::parse(row.policy).value();
    EXPECT_GT(run_mix(model, requests, backend_options(row.blocks, model, 4)), 0u) << row.policy;
  }
}

// An answer may be longer than what the KV cache holds: under h2o it stays bounded.
TEST(EngineInvariance, AnswersUnderH2oOutgrowTheCache) {
  const model::TestModel model(model::test_model_path("stories260K.gguf"));
  std::vector<Request> requests = draw_requests(model.config(), 4, 40, 300);
  for (Request& request : requests) {
    request.kv_policy = kv::KvPolicy::parse("h2o:64+16").value();
    request.constraint = nullptr;
  }
  BackendOptions options = backend_options(40, model, 4);
  const auto alone = answers_alone(model, options, requests);
  EngineFixture fixture(model, options, *kernels::available_sets().back());
  std::vector<std::shared_ptr<TestSink>> got;
  for (const Request& request : requests) got.push_back(fixture.submit(request));
  fixture.run();
  expect_same(got, alone);
  EXPECT_LT(fixture.backend().kv_tokens(), 170u);
  EXPECT_GE(got.front()->answers.front().tokens.size(), 297u);
}

// A policy is none where it drops nothing.
TEST(EngineInvariance, LargeBudgetsGiveTheFullContext) {
  const model::TestModel model(model::test_model_path("stories260K.gguf"));
  std::vector<Request> requests = draw_requests(model.config(), 6, 60, 20);
  const BackendOptions options = backend_options(400, model, 16);
  const auto full = answers_alone(model, options, requests);
  const auto selected = [&](const char* name) {
    for (Request& request : requests) request.kv_policy = kv::KvPolicy::parse(name).value();
    return answers_alone(model, options, requests);
  };
  expect_same(selected("h2o:500"), full);
  expect_same(selected("snapkv:500"), full);
  const auto bounded = selected("h2o:32+4");
  EXPECT_FALSE(same_scores(bounded[0]->answers[0].scores, full[0]->answers[0].scores));
}

class EveryKernelConfig : public testing::TestWithParam<MixCase> {};

TEST_P(EveryKernelConfig, NothingChangesAnOutput) {
  const model::AnyModel model(GetParam().model);
  const KernelConfig& kernel_config = GetParam().kernel_config;
  std::vector<Request> requests = draw_requests(model.parts().config, 8, 40, 16);
  if (GetParam().policies != Policies::kNone) draw_policies(GetParam().policies, requests);
  run_mix(model.parts(), requests,
          backend_options(GetParam().kv_blocks, model.parts(), 4, kernel_config), kernel_config,
          kFewWays);
}

INSTANTIATE_TEST_SUITE_P(Mixes, EveryKernelConfig, testing::ValuesIn(all_mixes()));

TEST(EngineInvariance, DefaultModel) {
  REQUIRE_DEFAULT_MODEL();
  const model::TestModel model(default_model_path());
  BackendOptions options = backend_options(40, model, 16);
  options.kv_bytes = 13ull << 20;
  const auto requests = draw_requests(model.config(), 8, 100, 12);
  const auto alone = answers_alone(model, options, requests);
  EngineFixture fixture(model, options, *kernels::available_sets().back());
  std::vector<std::shared_ptr<TestSink>> got;
  for (const Request& request : requests) got.push_back(fixture.submit(request));
  fixture.run();
  expect_same(got, alone);
}

// The core with one request gives what generate_single() gives: two implementations agree.
TEST(EngineInvariance, AloneIsSingleSequence) {
  const model::TestModel model(model::test_model_path("stories260K.gguf"));
  const BackendOptions options = backend_options(400, model, 16);
  auto requests = draw_requests(model.config(), 6, 60, 30);
  std::erase_if(requests, [](const Request& request) {
    return request.sampling.n > 1 || has_penalties(request.sampling);
  });
  const auto alone = answers_alone(model, options, requests);
  ThreadPool pool(2);
  model::Decoder decoder(model.config(), model.weights(), *kernels::available_sets().back(), pool,
                         {.rows_max = 64});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SingleRequest single;
    single.prompt = requests[i].prompt;
    single.tokens_max = *requests[i].end.max_tokens;
    single.context_max = model.config().context;
    single.sampling = requests[i].sampling;
    single.constraint = requests[i].constraint;
    const auto answer = generate_single(decoder, single, SteadyClock());
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer.value().tokens, alone[i]->answers[0].tokens) << i;
  }
}

}  // namespace
}  // namespace pagoda::engine
