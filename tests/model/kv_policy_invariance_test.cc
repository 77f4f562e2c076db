// Answers never change under a KV policy: rows that see a window of their past, and attention
// sinks, are the same bits under every condition that must not matter, for models and KV dtypes of
// every kind; and they are what the policy says they are.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "default_model.h"
#include "model/invariance_checks.h"
#include "model/seeded_model.h"

namespace pagoda::model {
namespace {

using gguf::TensorType;
using kv::memory::AttentionSpec;
using kv::memory::Element;
using kv::memory::Elements;

struct PolicyCase {
  ModelCase model;
  std::string dtype_name;
  KvCacheDtype dtype;
  AttentionSpec policy;

  std::string name() const {
    return model.name + "_" + dtype_name + "_" + std::to_string(policy.sinks) + "_" +
           std::to_string(policy.window);
  }
};
void PrintTo(const PolicyCase& c, std::ostream* out) { *out << c.name(); }

// A window alone; sinks within a block; sinks that end inside one, and are more than the window.
constexpr AttentionSpec kPolicies[] = {
    {.window = 21}, {.window = 18, .sinks = 4}, {.window = 7, .sinks = 20}};

struct NamedDtype {
  const char* name;
  Elements elements;
};
constexpr NamedDtype kDtypes[] = {
    {"fp32", Element::kF32},  {"fp16", Element::kF16},
    {"bf16", Element::kBF16}, {"e4m3", Element::kE4M3},
    {"e5m2", Element::kE5M2}, {"int8", Element::kInt8},
    {"int4", Element::kInt4}, {"k8v4", {Element::kInt8, Element::kInt4}},
};

std::vector<PolicyCase> all_cases() {
  std::vector<PolicyCase> cases;
  const ModelCase qwen3 = {"qwen3", small_shape(TensorType::kQ4_0, true)};
  for (const NamedDtype& dtype : kDtypes) {
    cases.push_back({qwen3, dtype.name, dtype.elements, kPolicies[1]});
  }
  for (const AttentionSpec& policy : {kPolicies[0], kPolicies[2]}) {
    cases.push_back({qwen3, "bf16", Element::kBF16, policy});
    cases.push_back({qwen3, "k8v4", Elements(Element::kInt8, Element::kInt4), policy});
  }
  // Every other layer has a window of its own, which stays.
  cases.push_back(
      {{"windows", small_shape(TensorType::kBF16, false)}, "bf16", Element::kBF16, kPolicies[1]});
  // Learned sinks beside sink tokens, and experts; capped scores; latents; rows that layers share.
  ModelShape experts = small_shape(TensorType::kBF16, true);
  experts.router = {.experts = 4, .chosen = 2};
  experts.expert_width = 256;
  experts.sinks = true;
  experts.score_cap = 20;
  for (const NamedDtype& dtype : {kDtypes[2], kDtypes[5]}) {
    cases.push_back({{"experts_and_sinks", experts}, dtype.name, dtype.elements, kPolicies[1]});
    cases.push_back({{"arch_deepseek3"}, dtype.name, dtype.elements, kPolicies[1]});
    cases.push_back({{"arch_deepseek3"}, dtype.name, dtype.elements, kPolicies[2]});
  }
  cases.push_back({{"latents", latent_shape()}, "int4", Element::kInt4, kPolicies[1]});
  cases.push_back({{"arch_gemma4_shared"}, "bf16", Element::kBF16, kPolicies[2]});
  cases.push_back({{"arch_gpt_oss"}, "bf16", Element::kBF16, kPolicies[1]});
  return cases;
}

class KvPolicyInvariance : public testing::TestWithParam<PolicyCase> {
 protected:
  const AnyModel model_of_case_{GetParam().model};
  const ModelParts model_ = model_of_case_.parts();
  Conditions on(const kernels::KernelSet* set) const {
    return {.kernels = set, .element = GetParam().dtype, .policy = GetParam().policy};
  }
};

TEST_P(KvPolicyInvariance, NothingChangesTheLogits) {
  const Tokens tokens = random_tokens(model_.config, 90, 1);
  const Tokens few(tokens.begin(), tokens.begin() + 40);
  for (const kernels::KernelSet* const set : varied_sets()) {
    const Conditions base = on(set);
    const Logits expected = plain_run(model_, on(&kernels::ref_set(set->numerics)), few);
    ASSERT_TRUE(same_bits(plain_run(model_, base, few), expected)) << set->name;
    ASSERT_TRUE(same_bits(run_without_cache(model_, base, few), expected)) << set->name;
    expect_chunks_threads_and_ids_change_nothing(model_, base, tokens, kFewWays);
    expect_neighbours_change_nothing(model_, base, 60);
    for (const std::uint32_t block_tokens : {1u, 3u, 64u}) {
      Conditions conditions = base;
      conditions.chunk = 7;
      conditions.block_tokens = block_tokens;
      ASSERT_TRUE(same_bits(run_sequences(model_, conditions, {few}).front(), expected))
          << set->name << ", blocks of " << block_tokens;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, KvPolicyInvariance, testing::ValuesIn(all_cases()),
                         [](const auto& instance) { return instance.param.name(); });

double relative_difference(std::span<const float> logits, std::span<const float> expected) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    difference += std::pow(double{logits[i]} - expected[i], 2);
    size += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(difference / size);
}

// Rows of one layer know only their own token and position, and attention only distances: what a
// row sees under a policy is what the last row of a text sees that has the sinks and the window
// alone.
TEST(KvPolicy, OneLayerSeesSinksAndWindowAsIfNothingWasBetweenThem) {
  for (const bool qk_norm : {false, true}) {
    ModelShape shape = small_shape(TensorType::kBF16, qk_norm);
    shape.layers = 1;
    shape.window = 0;
    const SeededModel model(shape);
    const Tokens tokens = random_tokens(model.config(), 700, 5);
    const std::size_t vocabulary = model.config().vocabulary;
    const kernels::KernelSet& set = kernels::ref_set(kernels::Numerics::kFp32);
    for (const AttentionSpec& policy :
         {AttentionSpec{.window = 21}, AttentionSpec{.window = 30, .sinks = 4},
          AttentionSpec{.window = 40, .sinks = 530}}) {
      Conditions conditions = {.kernels = &set, .threads = 2, .element = Element::kF32};
      conditions.policy = policy;
      const Logits bounded = run_sequences(model, conditions, {tokens}).front();
      conditions.policy = {};
      for (const std::size_t row : {std::size_t{policy.window + policy.sinks}, std::size_t{699}}) {
        Tokens seen(tokens.begin(), tokens.begin() + policy.sinks);
        seen.insert(seen.end(),
                    tokens.begin() + static_cast<std::ptrdiff_t>(row + 1 - policy.window),
                    tokens.begin() + static_cast<std::ptrdiff_t>(row + 1));
        const Logits alone = run_sequences(model, conditions, {seen}).front();
        const std::span<const float> got(bounded.data() + row * vocabulary, vocabulary);
        const std::span<const float> expected(alone.data() + alone.size() - vocabulary, vocabulary);
        EXPECT_LT(relative_difference(got, expected), 1e-4)
            << policy.sinks << "+" << policy.window << ", row " << row;
      }
    }
  }
}

// Windows and sinks that begin and end in different splits, 256 or 512 keys each, by every set of
// the machine: those of one numerics agree, at once and, of vectorised ones, in chunks.
TEST(KvPolicy, NothingChangesTheLogitsWhereRowsSeeSeveralSplits) {
  ModelShape shape = small_shape(TensorType::kBF16, true);
  shape.layers = 1;
  const SeededModel model(shape);
  const Tokens tokens = random_tokens(model.config(), 700, 8);
  for (const AttentionSpec& policy :
       {AttentionSpec{.window = 261}, AttentionSpec{.window = 300, .sinks = 30},
        AttentionSpec{.window = 260, .sinks = 270}}) {
    std::map<kernels::Numerics, Logits> expected;
    for (const kernels::KernelSet* const set : varied_sets()) {
      Conditions conditions = {.kernels = set, .threads = 2, .element = Element::kBF16};
      conditions.policy = policy;
      const Logits at_once = run_sequences(model, conditions, {tokens}).front();
      const Logits& first = expected.try_emplace(set->numerics, at_once).first->second;
      EXPECT_TRUE(same_bits(at_once, first))
          << set->name << ", " << policy.sinks << "+" << policy.window;
      if (set == &kernels::ref_set()) continue;  // which is slow
      conditions.threads = 3;
      conditions.chunk = 37;
      EXPECT_TRUE(same_bits(run_sequences(model, conditions, {tokens}).front(), first))
          << set->name << " in chunks, " << policy.sinks << "+" << policy.window;
    }
  }
}

// What a row sees does not begin to differ before something is out of sight.
TEST(KvPolicy, RowsThatSeeEverythingAreThoseOfTheFullContext) {
  const SeededModel model(small_shape(TensorType::kBF16, true));
  const Tokens tokens = random_tokens(model.config(), 300, 6);
  const std::size_t vocabulary = model.config().vocabulary;
  for (const kernels::KernelSet* const set : varied_sets()) {
    Conditions conditions = {.kernels = set, .threads = 2, .chunk = 50, .element = Element::kBF16};
    const Logits full = run_sequences(model, conditions, {tokens}).front();
    conditions.policy = {.window = 250, .sinks = 30};
    const Logits bounded = run_sequences(model, conditions, {tokens}).front();
    const std::size_t same = 280 * vocabulary;
    EXPECT_TRUE(same_bits({bounded.begin(), bounded.begin() + static_cast<std::ptrdiff_t>(same)},
                          {full.begin(), full.begin() + static_cast<std::ptrdiff_t>(same)}))
        << set->name;
    const std::span<const float> next(bounded.data() + same, vocabulary);
    EXPECT_GT(relative_difference(next, {full.data() + same, vocabulary}), 0) << set->name;
  }
}

// Every dtype under every policy, by the fastest set.
TEST(KvPolicyOfTheDefaultModel, NothingChangesTheLogits) {
  REQUIRE_DEFAULT_MODEL();
  const TestModel model(default_model_path());
  const Tokens tokens = random_tokens(model.config(), 48, 7);
  for (const NamedDtype& dtype : kDtypes) {
    for (const AttentionSpec& policy : kPolicies) {
      const Conditions base = {
          .kernels = kernels::available_sets().back(), .element = dtype.elements, .policy = policy};
      expect_chunks_threads_and_ids_change_nothing(model, base, tokens, kLongWays);
      const Logits expected = run_sequences(model, base, {tokens}).front();
      Conditions one_by_one = base;
      one_by_one.chunk = 1;
      one_by_one.threads = 2;
      ASSERT_TRUE(same_bits(run_sequences(model, one_by_one, {tokens}).front(), expected))
          << dtype.name << ", " << policy.sinks << "+" << policy.window;
    }
  }
}

}  // namespace
}  // namespace pagoda::model
