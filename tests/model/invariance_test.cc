// Answers never change: logits are compared bit for bit under every condition that must not
// matter, for every kernel set this CPU has, every type of cached rows and weights of every kind.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>
#include <string>

#include "default_model.h"
#include "model/seeded_model.h"
#include "model/test_model.h"

namespace pagoda::model {
namespace {

using gguf::TensorType;
using kv::memory::Element;

constexpr Element kElements[] = {Element::kF32, Element::kF16, Element::kBF16};

bool same_bits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool all_finite(const Logits& logits) {
  for (const float logit : logits) {
    if (!std::isfinite(logit)) return false;
  }
  return true;
}

// Runs the sequence alone, at once, on one thread, in order: the reference for all other runs.
Logits plain_run(const ModelParts& model, const Conditions& conditions, const Tokens& tokens) {
  return run_sequences(model, {.kernels = conditions.kernels, .element = conditions.element},
                       {tokens})
      .front();
}

// How a sequence is computed.
struct Way {
  std::size_t threads;
  std::uint32_t chunk;  // 0: all at once
};
constexpr Way kWays[] = {{1, 1}, {1, 64}, {2, 16}, {2, 0}, {3, 64}, {5, 0}, {8, 64}};
// Conditions for long sequences, and for short ones.
constexpr Way kLongWays[] = {{3, 64}, {8, 0}};
constexpr Way kFewWays[] = {{1, 7}, {2, 0}, {3, 16}, {5, 1}, {8, 0}};

void expect_chunks_threads_and_ids_change_nothing(const ModelParts& model, const Conditions& base,
                                                  const Tokens& tokens,
                                                  std::span<const Way> ways = kWays) {
  const Logits expected = plain_run(model, base, tokens);
  ASSERT_TRUE(all_finite(expected)) << "a NaN was read from a free block";
  for (const Way& way : ways) {
    Conditions conditions = base;
    conditions.chunk = way.chunk;
    conditions.threads = way.threads;
    conditions.shuffle_seed = 40 + way.chunk;
    const auto logits = run_sequences(model, conditions, {tokens});
    ASSERT_TRUE(same_bits(logits.front(), expected))
        << base.kernels->name << ", chunks of " << way.chunk << ", " << way.threads << " threads";
  }
}

void expect_neighbours_change_nothing(const ModelParts& model, const Conditions& base,
                                      std::size_t longest) {
  std::vector<Tokens> sequences;
  for (std::size_t s = 0; s < 8; ++s) {
    sequences.push_back(random_tokens(model.config, 1 + (longest * (s + 1)) / 8 - s % 3, 70 + s));
  }
  std::vector<Logits> alone;
  for (const Tokens& tokens : sequences) alone.push_back(plain_run(model, base, tokens));
  for (const Way& way : {Way{2, 5}, Way{3, 0}, Way{5, 5}, Way{8, 0}}) {
    Conditions conditions = base;
    conditions.chunk = way.chunk;
    conditions.threads = way.threads;
    conditions.shuffle_seed = 3;
    const std::vector<Logits> together = run_sequences(model, conditions, sequences);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      ASSERT_TRUE(same_bits(together[s], alone[s]))
          << base.kernels->name << ", sequence " << s << " of 8, chunks of " << way.chunk << ", "
          << way.threads << " threads";
    }
  }
}

// Returns every set except the int8_bf16 reference, which is slow and whose bits another set has.
std::vector<const kernels::KernelSet*> varied_sets() {
  std::vector<const kernels::KernelSet*> sets;
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    if (set != &kernels::ref_set(kernels::Numerics::kInt8Bf16)) sets.push_back(set);
  }
  return sets;
}

class Invariance : public testing::TestWithParam<ModelCase> {
 protected:
  const AnyModel model_of_case_{GetParam()};
  const ModelParts model_ = model_of_case_.parts();
};

TEST_P(Invariance, ChunksThreadsAndBlockIdsChangeNothing) {
  // The sequence is long enough to cross a split boundary and many windows.
  const Tokens tokens = random_tokens(model_.config, kernels::kFp32SplitKeys + 70, 1);
  for (const kernels::KernelSet* const set : varied_sets()) {
    for (const Element element : kElements) {
      const bool preferred = element == set->kv_element;
      expect_chunks_threads_and_ids_change_nothing(
          model_, {.kernels = set, .element = element}, tokens,
          preferred ? std::span<const Way>(kWays) : kLongWays);
    }
  }
}

TEST_P(Invariance, TheBlockSizeChangesNothing) {
  const Tokens tokens = random_tokens(model_.config, 150, 2);
  for (const kernels::KernelSet* const set : varied_sets()) {
    const Logits expected = plain_run(model_, {.kernels = set}, tokens);
    for (const std::uint32_t block_tokens : {1u, 3u, 16u, 128u, 256u}) {
      const auto logits = run_sequences(
          model_, {.kernels = set, .chunk = 11, .block_tokens = block_tokens}, {tokens});
      ASSERT_TRUE(same_bits(logits.front(), expected))
          << set->name << " blocks of " << block_tokens;
    }
  }
}

TEST_P(Invariance, TheOrderOfAPageChangesNothing) {
  const Tokens tokens = random_tokens(model_.config, 101, 7);
  for (const kernels::KernelSet* const set : varied_sets()) {
    // Reverses each order.
    kernels::KernelSet turned = *set;
    turned.value_order = set->value_order == kv::memory::ValueOrder::kRows
                             ? kv::memory::ValueOrder::kTokenPairs
                             : kv::memory::ValueOrder::kRows;
    turned.key_order = set->key_order == kv::memory::KeyOrder::kRows
                           ? kv::memory::KeyOrder::kColumns
                           : kv::memory::KeyOrder::kRows;
    for (const Element element : kElements) {
      const Logits expected = plain_run(model_, {.kernels = set, .element = element}, tokens);
      for (const std::uint32_t block_tokens : {1u, 3u, 16u}) {
        const Conditions conditions = {.kernels = &turned,
                                       .threads = 2,
                                       .chunk = 7,
                                       .element = element,
                                       .block_tokens = block_tokens};
        ASSERT_TRUE(same_bits(run_sequences(model_, conditions, {tokens}).front(), expected))
            << set->name << " blocks of " << block_tokens;
      }
    }
  }
}

TEST_P(Invariance, NeighboursInTheBatchChangeNothing) {
  for (const kernels::KernelSet* const set : varied_sets()) {
    for (const Element element : kElements) {
      expect_neighbours_change_nothing(model_, {.kernels = set, .element = element}, 96);
    }
  }
}

TEST_P(Invariance, TheCacheChangesNothing) {
  const Tokens tokens = random_tokens(model_.config, 60, 4);
  for (const kernels::KernelSet* const set : varied_sets()) {
    for (const Element element : kElements) {
      Conditions conditions = {.kernels = set, .threads = 2, .chunk = 1, .element = element};
      const Logits expected = run_without_cache(model_, conditions, tokens);
      for (const std::size_t threads : {1, 2, 3, 5, 8}) {
        conditions.threads = threads;
        ASSERT_TRUE(same_bits(run_sequences(model_, conditions, {tokens}).front(), expected))
            << set->name << ", " << threads << " threads";
      }
    }
  }
}

// An error of merging would be the same under all conditions. But the two numerics split keys at
// different positions: they agree, within bf16, only if no key is lost between splits.
TEST_P(Invariance, NumericsWithDifferentSplitsAgree) {
  const Tokens tokens = random_tokens(model_.config, kernels::kFp32SplitKeys + 70, 8);
  const auto last_row = [&](kernels::Numerics numerics) {
    const kernels::KernelSet* fastest = nullptr;
    for (const kernels::KernelSet* const set : kernels::available_sets()) {
      if (set->numerics == numerics) fastest = set;
    }
    const Logits logits = plain_run(model_, {.kernels = fastest, .threads = 2}, tokens);
    return Logits(logits.end() - model_.config.vocabulary, logits.end());
  };
  const Logits floats = last_row(kernels::Numerics::kFp32);
  const Logits pairs = last_row(kernels::Numerics::kInt8Bf16);
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    difference += std::pow(double{floats[i]} - pairs[i], 2);
    size += std::pow(double{floats[i]}, 2);
  }
  EXPECT_LT(std::sqrt(difference / size), 0.06);
}

TEST_P(Invariance, EveryKernelSetGivesTheReferenceBitsOfItsNumerics) {
  const Tokens tokens = random_tokens(model_.config, 100, 5);
  for (const kernels::Numerics numerics :
       {kernels::Numerics::kFp32, kernels::Numerics::kInt8Bf16}) {
    const Logits expected = plain_run(model_, {.kernels = &kernels::ref_set(numerics)}, tokens);
    for (const kernels::KernelSet* const set : kernels::available_sets()) {
      if (set->numerics != numerics) continue;
      EXPECT_TRUE(same_bits(plain_run(model_, {.kernels = set}, tokens), expected)) << set->name;
    }
  }
}

const auto kNameOfCase = [](const auto& instance) { return instance.param.name; };

INSTANTIATE_TEST_SUITE_P(Models, Invariance,
                         testing::Values(ModelCase{"stories260K"}, ModelCase{"tiny_window"},
                                         ModelCase{"tiny_mqa"}, ModelCase{"arch_gemma3"},
                                         ModelCase{"arch_olmo3"}, ModelCase{"arch_gpt_oss"},
                                         ModelCase{"arch_qwen2moe"}, ModelCase{"arch_deepseek3"},
                                         ModelCase{"arch_gemma4"}, ModelCase{"arch_gemma4_shared"},
                                         ModelCase{"qwen3", small_shape(TensorType::kBF16, true)}),
                         kNameOfCase);

// Weights as files hold them, of every type that has a GEMM of its own.
class WeightInvariance : public Invariance {};

TEST_P(WeightInvariance, OnEverySetWithEveryElementNothingChangesTheLogits) {
  const Tokens tokens = random_tokens(model_.config, 70, 9);
  const Tokens few(tokens.begin(), tokens.begin() + 20);
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    const bool plain = set == &kernels::ref_set(kernels::Numerics::kInt8Bf16);
    for (const Element element : kElements) {
      const Conditions base = {.kernels = set, .element = element};
      const Logits expected =
          plain_run(model_, {.kernels = &kernels::ref_set(set->numerics), .element = element}, few);
      ASSERT_TRUE(same_bits(plain_run(model_, base, few), expected)) << set->name;
      if (plain) continue;
      expect_chunks_threads_and_ids_change_nothing(model_, base, tokens, kFewWays);
      ASSERT_TRUE(same_bits(run_without_cache(model_, base, few), expected)) << set->name;
    }
    if (!plain) expect_neighbours_change_nothing(model_, {.kernels = set}, 24);
  }
}

std::vector<ModelCase> weight_cases() {
  std::vector<ModelCase> cases;
  for (const TensorType type : {TensorType::kF16, TensorType::kQ4_0, TensorType::kQ4_1,
                                TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ6_K}) {
    const std::string name(gguf::tensor_type_info(type).name);
    cases.push_back({"llama_" + name, small_shape(type, false)});
  }
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_K}) {
    const std::string name(gguf::tensor_type_info(type).name);
    cases.push_back({"qwen3_" + name, small_shape(type, true)});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Types, WeightInvariance, testing::ValuesIn(weight_cases()), kNameOfCase);

TEST(InvarianceOfTheDefaultModel, NothingChangesTheLogits) {
  REQUIRE_DEFAULT_MODEL();
  const TestModel model(default_model_path());
  const Conditions fastest = {.kernels = kernels::available_sets().back()};
  const Tokens tokens = random_tokens(model.config(), 72, 6);
  expect_chunks_threads_and_ids_change_nothing(model, fastest, tokens);
  expect_neighbours_change_nothing(model, fastest, 24);
  const Tokens few(tokens.begin(), tokens.begin() + 12);
  const Logits cached = run_sequences(model, fastest, {few}).front();
  ASSERT_TRUE(same_bits(run_without_cache(model, fastest, few), cached));
  const Conditions reference = {
      .kernels = &kernels::ref_set(fastest.kernels->numerics), .threads = 2, .chunk = 5};
  ASSERT_TRUE(same_bits(run_sequences(model, reference, {few}).front(), cached))
      << "the reference set differs";
}

}  // namespace
}  // namespace pagoda::model
