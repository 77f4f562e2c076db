// Answers never change: logits are compared bit for bit under every condition that must not
// matter, for every kernel set this CPU has.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "default_model.h"
#include "model/test_model.h"

namespace pagoda::model {
namespace {

using kv::memory::Element;

bool same_bits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool all_finite(const Logits& logits) {
  for (const float logit : logits) {
    if (!std::isfinite(logit)) return false;
  }
  return true;
}

// The sequence alone, at once, on one thread, in order: what everything is compared with.
Logits plain_run(const TestModel& model, const Conditions& conditions, const Tokens& tokens) {
  return run_sequences(model, {.kernels = conditions.kernels, .element = conditions.element},
                       {tokens})
      .front();
}

void expect_chunks_threads_and_ids_change_nothing(const TestModel& model, const Conditions& base,
                                                  const Tokens& tokens) {
  const Logits expected = plain_run(model, base, tokens);
  ASSERT_TRUE(all_finite(expected)) << "a NaN was read from a free block";
  for (const std::uint32_t chunk : {1u, 7u, 16u, 64u, 0u}) {
    for (const std::size_t threads : {1, 2}) {
      Conditions conditions = base;
      conditions.chunk = chunk;
      conditions.threads = threads;
      conditions.shuffle_seed = 40 + chunk;
      const auto logits = run_sequences(model, conditions, {tokens});
      ASSERT_TRUE(same_bits(logits.front(), expected))
          << base.kernels->name << ", chunks of " << chunk << ", " << threads << " threads";
    }
  }
}

void expect_neighbours_change_nothing(const TestModel& model, const Conditions& base,
                                      std::size_t longest) {
  std::vector<Tokens> sequences;
  for (std::size_t s = 0; s < 8; ++s) {
    sequences.push_back(random_tokens(model.config(), 1 + (longest * (s + 1)) / 8 - s % 3, 70 + s));
  }
  for (const std::uint32_t chunk : {5u, 0u}) {
    Conditions conditions = base;
    conditions.chunk = chunk;
    conditions.threads = 2;
    conditions.shuffle_seed = 3;
    const std::vector<Logits> together = run_sequences(model, conditions, sequences);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      ASSERT_TRUE(same_bits(together[s], plain_run(model, base, sequences[s])))
          << base.kernels->name << ", sequence " << s << " of 8, chunks of " << chunk;
    }
  }
}

// Every set but the reference of pairs, which is plain and slow and whose bits another set has.
std::vector<const kernels::KernelSet*> varied_sets() {
  std::vector<const kernels::KernelSet*> sets;
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    if (set != &kernels::ref_set(kernels::Arithmetic::kPairs)) sets.push_back(set);
  }
  return sets;
}

class Invariance : public testing::TestWithParam<const char*> {
 protected:
  const TestModel model_{test_model_path(GetParam())};
};

TEST_P(Invariance, ChunksThreadsAndBlockIdsChangeNothing) {
  // Long enough to cross a split boundary and many windows.
  const Tokens tokens = random_tokens(model_.config(), kernels::kFloatsSplit + 70, 1);
  for (const kernels::KernelSet* const set : varied_sets()) {
    for (const Element element : {Element::kF32, Element::kF16, Element::kBF16}) {
      expect_chunks_threads_and_ids_change_nothing(model_, {.kernels = set, .element = element},
                                                   tokens);
    }
  }
}

TEST_P(Invariance, TheBlockSizeChangesNothing) {
  const Tokens tokens = random_tokens(model_.config(), 150, 2);
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
  const Tokens tokens = random_tokens(model_.config(), 101, 7);
  for (const kernels::KernelSet* const set : varied_sets()) {
    // Each order the other way round.
    kernels::KernelSet turned = *set;
    turned.value_order = set->value_order == kv::memory::ValueOrder::kRows
                             ? kv::memory::ValueOrder::kTokenPairs
                             : kv::memory::ValueOrder::kRows;
    turned.key_order = set->key_order == kv::memory::KeyOrder::kRows
                           ? kv::memory::KeyOrder::kColumns
                           : kv::memory::KeyOrder::kRows;
    for (const Element element : {Element::kF32, Element::kF16, Element::kBF16}) {
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
    for (const Element element : {Element::kF32, Element::kF16, Element::kBF16}) {
      expect_neighbours_change_nothing(model_, {.kernels = set, .element = element}, 96);
    }
  }
}

TEST_P(Invariance, TheCacheChangesNothing) {
  const Tokens tokens = random_tokens(model_.config(), 60, 4);
  for (const kernels::KernelSet* const set : varied_sets()) {
    for (const Element element : {Element::kF32, Element::kF16, Element::kBF16}) {
      const Conditions conditions = {.kernels = set, .threads = 2, .chunk = 1, .element = element};
      ASSERT_TRUE(same_bits(run_sequences(model_, conditions, {tokens}).front(),
                            run_without_cache(model_, conditions, tokens)))
          << set->name;
    }
  }
}

// What is merged wrongly is merged wrongly under all conditions. But the two arithmetics divide
// keys at different places: they agree, as far as bf16 does, only if no key is lost between splits.
TEST_P(Invariance, ArithmeticsWithDifferentSplitsAgree) {
  const Tokens tokens = random_tokens(model_.config(), kernels::kFloatsSplit + 70, 8);
  const auto last_row = [&](kernels::Arithmetic arithmetic) {
    const kernels::KernelSet* fastest = nullptr;
    for (const kernels::KernelSet* const set : kernels::available_sets()) {
      if (set->arithmetic == arithmetic) fastest = set;
    }
    const Logits logits = plain_run(model_, {.kernels = fastest, .threads = 2}, tokens);
    return Logits(logits.end() - model_.config().vocabulary, logits.end());
  };
  const Logits floats = last_row(kernels::Arithmetic::kFloats);
  const Logits pairs = last_row(kernels::Arithmetic::kPairs);
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    difference += std::pow(double{floats[i]} - pairs[i], 2);
    size += std::pow(double{floats[i]}, 2);
  }
  EXPECT_LT(std::sqrt(difference / size), 0.06);
}

TEST_P(Invariance, EveryKernelSetGivesTheReferenceBitsOfItsArithmetic) {
  const Tokens tokens = random_tokens(model_.config(), 100, 5);
  for (const kernels::Arithmetic arithmetic :
       {kernels::Arithmetic::kFloats, kernels::Arithmetic::kPairs}) {
    const Logits expected = plain_run(model_, {.kernels = &kernels::ref_set(arithmetic)}, tokens);
    for (const kernels::KernelSet* const set : kernels::available_sets()) {
      if (set->arithmetic != arithmetic) continue;
      EXPECT_TRUE(same_bits(plain_run(model_, {.kernels = set}, tokens), expected)) << set->name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Invariance,
                         testing::Values("stories260K.gguf", "tiny_window.gguf", "tiny_mqa.gguf"),
                         [](const auto& instance) {
                           const std::string file = instance.param;
                           return file.substr(0, file.find('.'));
                         });

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
      .kernels = &kernels::ref_set(fastest.kernels->arithmetic), .threads = 2, .chunk = 5};
  ASSERT_TRUE(same_bits(run_sequences(model, reference, {few}).front(), cached))
      << "the reference set differs";
}

}  // namespace
}  // namespace pagoda::model
