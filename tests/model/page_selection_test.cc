// What KV policies that select pages observe of attention, and what rows see once pages are gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/thread_pool.h"
#include "kv/memory/page_buffer.h"
#include "model/invariance_checks.h"
#include "model/key_observer.h"
#include "model/seeded_model.h"

namespace pagoda::model {
namespace {

using gguf::TensorType;
using kv::memory::Element;
using kv::memory::Elements;

// One sequence that is computed in chunks, with its counters and tables of its own.
class ObservedRun {
 public:
  ObservedRun(const ModelParts& model, const Conditions& conditions, std::size_t tokens,
              bool heads_apart = false)
      : config_(model.config),
        conditions_(conditions),
        pool_(conditions.threads),
        decoder_(model.config, model.weights, *conditions.kernels, pool_,
                 {.rows_max = static_cast<std::uint32_t>(tokens),
                  .kv_cache_dtype = conditions.element,
                  .block_tokens = conditions.block_tokens}),
        blocks_(static_cast<std::uint32_t>((tokens + conditions.block_tokens - 1) /
                                           conditions.block_tokens)),
        pages_(kv::memory::PageBuffer::allocate(
                   decoder_.page_layout(),
                   blocks_ * static_cast<std::uint32_t>(decoder_.group_plan().groups.size()))
                   .value()),
        tokens_max_(tokens),
        heads_apart_(heads_apart) {
    const std::size_t groups = decoder_.group_plan().groups.size();
    for (std::uint32_t i = 0; i < pages_.pages(); ++i) pages_.fill_with_nan(kv::BlockId(i));
    tables_.resize(groups);
    counters_.resize(groups);
    dropped_.assign(groups, 0);
    for (std::size_t group = 0; group < groups; ++group) {
      for (std::uint32_t b = 0; b < blocks_; ++b) {
        tables_[group].emplace_back(static_cast<std::uint32_t>(group) * blocks_ + blocks_ - 1 - b);
      }
      const std::size_t parts = heads_apart ? config_.layers * config_.heads : 1;
      counters_[group].assign(parts * tokens, 0);
    }
  }

  // Observes queries from that position on. Returns the logits of all rows.
  Logits feed(std::span<const TokenId> tokens, std::uint64_t observed_begin) {
    Logits logits;
    const std::size_t chunk = conditions_.chunk == 0 ? tokens.size() : conditions_.chunk;
    for (std::size_t at = 0; at < tokens.size(); at += chunk) {
      step(tokens.subspan(at, std::min(chunk, tokens.size() - at)), observed_begin, logits);
    }
    return logits;
  }

  // Drops blocks of every group without a window, ascending; their pages become NaN.
  void drop(const std::vector<std::uint64_t>& blocks) {
    for (std::size_t group = 0; group < tables_.size(); ++group) {
      if (decoder_.group_plan().groups[group].window != 0) continue;
      for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
        const auto at = tables_[group].begin() + static_cast<std::ptrdiff_t>(*block);
        pages_.fill_with_nan(*at);
        tables_[group].erase(at);
      }
      dropped_[group] += blocks.size() * conditions_.block_tokens;
    }
  }

  const std::vector<std::uint64_t>& counters(std::size_t group) const { return counters_[group]; }
  // What a token's queries gave to a KV head, where heads are apart.
  std::uint64_t counter(std::uint32_t layer, std::uint32_t kv_head, std::size_t token) const {
    const kv::memory::LayerLocation at = decoder_.group_plan().locations[layer];
    return counters_[at.group][(at.layer * config_.heads + kv_head) * tokens_max_ + token];
  }

 private:
  void step(std::span<const TokenId> tokens, std::uint64_t observed_begin, Logits& logits) {
    std::vector<kv::memory::BlockTable> tables;
    std::vector<std::uint64_t*> counters;
    for (std::size_t group = 0; group < tables_.size(); ++group) {
      tables.push_back(tables_[group].data());
      counters.push_back(counters_[group].data());
    }
    const SequenceRows rows = {
        .rows = static_cast<std::uint32_t>(tokens.size()),
        .first_position = done_,
        .tables = tables,
        .policy = {},
        .selected = {.tokens_dropped = dropped_,
                     .observed_begin = observed_begin,
                     .observed_end = done_ + tokens.size(),
                     .counters = counters,
                     .head_stride = heads_apart_ ? tokens_max_ : 0,
                     .layer_stride = heads_apart_ ? config_.heads * tokens_max_ : 0}};
    std::vector<std::uint32_t> all(tokens.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    const std::size_t before = logits.size();
    logits.resize(before + all.size() * config_.vocabulary);
    decoder_.forward({tokens, {&rows, 1}, all}, pages_, logits.data() + before);
    done_ += tokens.size();
  }

  const Config& config_;
  Conditions conditions_;
  ThreadPool pool_;
  Decoder decoder_;
  std::uint32_t blocks_;
  kv::memory::PageBuffer pages_;
  std::size_t tokens_max_;
  bool heads_apart_;
  std::uint64_t done_ = 0;
  std::vector<std::vector<kv::BlockId>> tables_;      // [group]
  std::vector<std::vector<std::uint64_t>> counters_;  // [group]
  std::vector<std::uint64_t> dropped_;                // [group]
};

// A line of tests/data/kvpress/scores.txt, and what it is about.
struct KvpressScores {
  std::string model;
  Tokens tokens;
  std::uint32_t window = 0;  // 0: all queries are observed
  std::uint32_t kernel = 1;
  std::uint32_t layer = 0;
  std::uint32_t head = 0;
  std::vector<double> scores;
};

std::vector<KvpressScores> read_kvpress_scores() {
  std::ifstream file(test_model_path("../kvpress/scores.txt"));
  std::vector<KvpressScores> all;
  KvpressScores now;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "model") words >> now.model;
    if (word == "tokens") {
      now.tokens.clear();
      for (std::uint32_t token = 0; words >> token;) now.tokens.emplace_back(token);
    }
    if (word == "observed") now.window = 0;
    if (word == "snapkv") words >> now.window >> now.kernel;
    if (word != "score") continue;
    words >> now.layer >> now.head;
    now.scores.clear();
    for (double score = 0; words >> score;) now.scores.push_back(score);
    all.push_back(now);
  }
  return all;
}

// The mean over the neighbours, as SnapKV has it: those before the window.
double pooled(const std::vector<double>& scores, std::size_t token, std::uint32_t kernel) {
  double sum = 0;
  for (std::size_t at = 0; at < scores.size(); ++at) {
    const std::size_t distance = at > token ? at - token : token - at;
    if (2 * distance < kernel) sum += scores[at];
  }
  return sum / kernel;
}

TEST(ObservedAttention, IsThatOfKvpressForEveryTokenAndKvHead) {
  const std::vector<KvpressScores> all = read_kvpress_scores();
  ASSERT_GT(all.size(), 40u);
  double furthest = 0;
  std::uint32_t compared = 0;
  for (const KvpressScores& expected : all) {
    const TestModel model(test_model_path(expected.model));
    if (model.config().attention[expected.layer].window != 0) continue;  // it is not observed
    ++compared;
    const std::size_t count = expected.tokens.size();
    const std::uint32_t window =
        expected.window == 0 ? static_cast<std::uint32_t>(count) : expected.window;
    ObservedRun run(model, {.chunk = 37, .element = Element::kF32}, count, true);
    run.feed(expected.tokens, count - window);
    const Config& config = model.config();
    const double unit = kernels::kAttentionUnit * config.heads / config.heads_of(0).kv_heads *
                        (expected.window == 0 ? 1 : window);
    std::vector<double> scores;
    for (std::size_t token = 0; token < expected.scores.size(); ++token) {
      const std::uint64_t sum = run.counter(expected.layer, expected.head, token);
      scores.push_back(static_cast<double>(sum) / unit);
    }
    for (std::size_t token = 0; token < expected.scores.size(); ++token) {
      const double got =
          expected.window == 0 ? scores[token] : pooled(scores, token, expected.kernel);
      furthest = std::max(furthest, std::abs(got - expected.scores[token]));
      ASSERT_NEAR(got, expected.scores[token], 1e-3)
          << expected.model << " window " << expected.window << " layer " << expected.layer
          << " head " << expected.head << " token " << token;
    }
  }
  EXPECT_GE(compared, 40u);
  EXPECT_LT(furthest, 1e-4) << "closer than was asked for";
}

struct SelectionCase {
  ModelCase model;
  std::string dtype_name;
  Elements elements;

  std::string name() const { return model.name + "_" + dtype_name; }
};
void PrintTo(const SelectionCase& c, std::ostream* out) { *out << c.name(); }

std::vector<SelectionCase> selection_cases() {
  std::vector<SelectionCase> cases;
  const ModelCase qwen3 = {"qwen3", small_shape(TensorType::kQ4_0, true)};
  for (const auto& [name, elements] : std::initializer_list<std::pair<const char*, Elements>>{
           {"fp32", Element::kF32},
           {"fp16", Element::kF16},
           {"bf16", Element::kBF16},
           {"e4m3", Element::kE4M3},
           {"e5m2", Element::kE5M2},
           {"int8", Element::kInt8},
           {"int4", Element::kInt4},
           {"k8v4", {Element::kInt8, Element::kInt4}}}) {
    cases.push_back({qwen3, name, elements});
  }
  cases.push_back({{"windows", small_shape(TensorType::kBF16, false)}, "bf16", Element::kBF16});
  ModelShape experts = small_shape(TensorType::kBF16, true);
  experts.router = {.experts = 4, .chosen = 2};
  experts.expert_width = 256;
  experts.sinks = true;
  experts.score_cap = 20;
  cases.push_back({{"experts_and_sinks", experts}, "bf16", Element::kBF16});
  cases.push_back({{"arch_deepseek3"}, "bf16", Element::kBF16});
  cases.push_back({{"arch_gemma4_shared"}, "bf16", Element::kBF16});
  cases.push_back({{"arch_gpt_oss"}, "int8", Element::kInt8});
  return cases;
}

class SelectionInvariance : public testing::TestWithParam<SelectionCase> {};

// Counters, and logits behind a drop, are the same bits in all ways to compute them; and sets of
// one numerics agree.
TEST_P(SelectionInvariance, NothingChangesCountersAndLogits) {
  const AnyModel any(GetParam().model);
  const ModelParts model = any.parts();
  const Tokens tokens = random_tokens(model.config, 120, 3);
  const auto prompt = std::span<const TokenId>(tokens).first(90);
  const auto answer = std::span<const TokenId>(tokens).subspan(90);
  for (const kernels::KernelSet* const set : varied_sets()) {
    std::vector<std::vector<std::uint64_t>> expected;
    Logits expected_logits;
    const auto run_way = [&](const kernels::KernelSet& by, const Way& way) {
      ObservedRun run(model,
                      {.kernels = &by,
                       .threads = way.threads,
                       .chunk = way.chunk,
                       .element = GetParam().elements},
                      tokens.size());
      run.feed(prompt, 70);
      run.drop({0, 2, 3});
      const Logits logits = run.feed(answer, 70);
      std::vector<std::vector<std::uint64_t>> counters;
      const std::size_t groups =
          plan_kv_groups(model.config, by, GetParam().elements, 16).groups.size();
      for (std::size_t group = 0; group < groups; ++group) counters.push_back(run.counters(group));
      if (expected.empty()) {
        expected = counters;
        expected_logits = logits;
      }
      EXPECT_EQ(counters, expected) << by.name << " " << way.threads << " " << way.chunk;
      EXPECT_TRUE(same_bits(logits, expected_logits)) << by.name << " " << way.threads;
    };
    for (const Way& way : kFewWays) run_way(*set, way);
    run_way(kernels::ref_set(set->numerics), {2, 16});
    // All weight of every observed query was given to keys, or to learned sinks.
    std::uint64_t sum = 0;
    for (const auto& counters : expected) {
      for (const std::uint64_t counter : counters) sum += counter;
    }
    EXPECT_GT(sum, 0u);
    for (const float logit : expected_logits) ASSERT_TRUE(std::isfinite(logit)) << set->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SelectionInvariance, testing::ValuesIn(selection_cases()),
                         [](const auto& instance) { return instance.param.name(); });

// Observed rows that see several splits, 256 or 512 keys each, before and behind a drop, by every
// set of the machine: those of one numerics count the same, at once and, of vectorised ones, in
// chunks.
TEST(ObservedAttention, IsTheSameWhereRowsSeeSeveralSplits) {
  ModelShape shape = small_shape(TensorType::kBF16, true);
  shape.layers = 1;
  const SeededModel model(shape);
  const Tokens tokens = random_tokens(model.config(), 700, 11);
  const auto prompt = std::span<const TokenId>(tokens).first(660);
  const auto answer = std::span<const TokenId>(tokens).subspan(660);
  for (const Elements elements : {Elements(Element::kBF16), Elements(Element::kInt8)}) {
    std::map<kernels::Numerics, std::pair<std::vector<std::uint64_t>, Logits>> expected;
    for (const kernels::KernelSet* const set : varied_sets()) {
      for (const Way& way : {Way{2, 0}, Way{3, 37}}) {
        if (set == &kernels::ref_set() && way.chunk != 0) continue;  // which is slow
        ObservedRun run(
            model,
            {.kernels = set, .threads = way.threads, .chunk = way.chunk, .element = elements},
            tokens.size());
        run.feed(prompt, 630);
        run.drop({1, 2, 3, 17, 30});
        const Logits logits = run.feed(answer, 630);
        const auto& [counters, first] =
            expected.try_emplace(set->numerics, run.counters(0), logits).first->second;
        EXPECT_EQ(run.counters(0), counters) << set->name << ", chunks of " << way.chunk;
        EXPECT_TRUE(same_bits(logits, first)) << set->name << ", chunks of " << way.chunk;
      }
    }
  }
}

// Counters of one layer add up to one unit for each query head of each observed row.
TEST(ObservedAttention, AddsUpToTheWholeOfEverySoftmax) {
  ModelShape shape = small_shape(TensorType::kBF16, true);
  shape.layers = 1;
  const SeededModel model(shape);
  const Tokens tokens = random_tokens(model.config(), 50, 9);
  for (const kernels::KernelSet* const set : varied_sets()) {
    ObservedRun run(model, {.kernels = set, .threads = 2, .element = Element::kBF16}, 50);
    run.feed(tokens, 41);
    double sum = 0;
    for (const std::uint64_t counter : run.counters(0)) sum += static_cast<double>(counter);
    const double whole = kernels::kAttentionUnit * 9 * shape.heads;
    EXPECT_NEAR(sum / whole, 1, 1e-6) << set->name;
    EXPECT_LE(sum, whole);
  }
}

double relative_difference(std::span<const float> logits, std::span<const float> expected) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    difference += std::pow(double{logits[i]} - expected[i], 2);
    size += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(difference / size);
}

// Rows of one layer know only their own token and position: without its first blocks a row sees
// what it sees through a window, at true positions.
TEST(DroppedPages, LeaveTheOthersAtTheirPositions) {
  ModelShape shape = small_shape(TensorType::kBF16, true);
  shape.layers = 1;
  const SeededModel model(shape);
  const Tokens tokens = random_tokens(model.config(), 700, 5);
  const std::size_t vocabulary = model.config().vocabulary;
  for (const kernels::KernelSet* const set : varied_sets()) {
    const Conditions conditions = {.kernels = set, .threads = 2, .element = Element::kF32};
    ObservedRun run(model, conditions, tokens.size());
    const auto all = std::span<const TokenId>(tokens);
    run.feed(all.first(699), 699);
    run.drop({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
    const Logits dropped = run.feed(all.subspan(699), 699);
    Conditions masked = conditions;
    masked.policy = {.window = 700 - 20 * 16};
    const Logits window = run_sequences(model, masked, {tokens}).front();
    const std::span<const float> expected(window.data() + 699 * vocabulary, vocabulary);
    EXPECT_LT(relative_difference(dropped, expected), 1e-2) << set->name;
    if (set->numerics == kernels::Numerics::kFp32) {
      EXPECT_LT(relative_difference(dropped, expected), 1e-5) << set->name;
    }
    const Logits full = run_sequences(model, conditions, {tokens}).front();
    EXPECT_GT(relative_difference(dropped, {full.data() + 699 * vocabulary, vocabulary}), 1e-3);
  }
}

TEST(ObserverPlan, BoundsTheMemoryOfAllThreads) {
  struct Row {
    std::uint32_t group;
    std::size_t stride;
    std::size_t threads;
    std::uint32_t rows;
    std::size_t workers;
  };
  for (const Row& row :
       {Row{3, 1024, 2, 10, 2}, Row{4, 8192, 16, 8, 16}, Row{4, 65536, 16, 1, 16},
        Row{4, 131328, 256, 1, 73}, Row{128, 131328, 64, 1, 3}, Row{128, 1 << 20, 64, 1, 1}}) {
    const ObserverPlan plan = plan_observer(row.group, row.stride, row.threads);
    EXPECT_EQ(plan.rows, row.rows) << row.group << " heads, " << row.stride;
    EXPECT_EQ(plan.workers, row.workers) << row.group << " heads, " << row.stride;
    const std::size_t bytes = row.stride * (4 * row.group * plan.rows + 12);
    EXPECT_LE(plan.workers > 1 ? plan.workers * bytes : 0, kObserverBytesMax);
  }
}

}  // namespace
}  // namespace pagoda::model
