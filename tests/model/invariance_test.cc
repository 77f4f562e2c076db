// Answers never change: logits are compared bit for bit under every condition that must not
// matter, for every kernel set this CPU has, every type of cached rows and weights of every kind.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>

#include "default_model.h"
#include "model/invariance_checks.h"
#include "model/seeded_model.h"
#include "model/test_model.h"

namespace pagoda::model {
namespace {

using gguf::TensorType;
using kv::memory::Element;

constexpr Element kElements[] = {Element::kF32, Element::kF16, Element::kBF16};

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
    const kernels::KernelSet turned = with_turned_pages(*set);
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

const auto kNameOfCase = [](const auto& instance) { return instance.param.title(); };

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
  // Layers of every kind: windows, latents, experts, sinks.
  for (const char* const name : {"arch_gemma3", "arch_deepseek3", "arch_gpt_oss"}) {
    cases.push_back({.name = name, .quantised = TensorType::kQ8_0});
  }
  cases.push_back({.name = "arch_qwen3moe", .quantised = TensorType::kQ4_0});
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
