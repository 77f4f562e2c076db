// However many ranks compute a model together, its logits are those of one: bit for bit, on every
// kernel set, for every kind of model, element of the KV cache and mask of a KV policy.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "default_model.h"
#include "model/division.h"
#include "model/invariance_checks.h"
#include "model/seeded_model.h"
#include "model/test_model.h"
#include "ranks/thread_ranks.h"

namespace pagoda::model {
namespace {

using gguf::TensorType;
using kv::memory::Element;
using kv::memory::Elements;

std::vector<Logits> run_over_ranks(const ModelParts& model, const Conditions& conditions,
                                   std::uint32_t count, const std::vector<Tokens>& sequences) {
  ranks::ThreadRanks ranks(count);
  std::vector<Logits> logits;
  ranks.run([&](ranks::Communicator& mine) {
    Conditions own = conditions;
    own.communicator = &mine;
    own.threads = 1 + mine.rank() % 2;
    const std::vector<Logits> made = run_sequences(model, own, sequences);
    EXPECT_FALSE(mine.failure());
    if (mine.rank() == 0) logits = made;
  });
  return logits;
}

class RanksInvariance : public testing::TestWithParam<ModelCase> {
 protected:
  const AnyModel model_of_case_{GetParam()};
  const ModelParts model_ = model_of_case_.parts();
};

// One sequence is longer than windows, another decodes beside it.
TEST_P(RanksInvariance, TheirNumberChangesNoLogit) {
  const std::vector<Tokens> sequences = {random_tokens(model_.config, 90, 1),
                                         random_tokens(model_.config, 9, 2)};
  const KvCacheDtype elements[] = {Element::kF32, Element::kF16, Element::kBF16, Element::kInt8,
                                   Elements(Element::kE4M3)};
  std::size_t turn = 0;
  for (const kernels::KernelSet* const set : varied_sets()) {
    for (const std::uint32_t count : {2u, 3u, 4u}) {
      Conditions conditions = {.kernels = set, .element = elements[turn % std::size(elements)]};
      if (turn % 4 == 3) conditions.policy = {.window = 40, .sinks = 5};
      const auto alone = run_sequences(model_, conditions, sequences);
      conditions.chunk = turn % 2 == 0 ? 7 : 0;
      conditions.shuffle_seed = 20 + turn++;
      const auto together = run_over_ranks(model_, conditions, count, sequences);
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        ASSERT_TRUE(same_bits(together[i], alone[i]))
            << set->name << ", " << count << " ranks, sequence " << i << ", turn " << turn;
      }
    }
  }
}

std::vector<ModelCase> cases() {
  std::vector<ModelCase> made;
  // Heads that divide and that do not, fewer KV heads than ranks, windows, norms over all heads,
  // latents with and without those of queries, experts with and without a shared one, sinks, rows
  // of other layers, biases, caps, scales.
  for (const char* const name :
       {"stories260K",        "tiny_mqa",         "tiny_gqa",        "tiny_window",
        "arch_deepseek2",     "arch_deepseek3",   "arch_exaone4",    "arch_gemma2",
        "arch_gemma3",        "arch_gemma4",      "arch_gemma4_moe", "arch_gemma4_shared",
        "arch_glm4",          "arch_glm47_flash", "arch_gpt_oss",    "arch_granite",
        "arch_granitemoe",    "arch_mixtral",     "arch_olmo2",      "arch_olmo3",
        "arch_phi3_longrope", "arch_qwen2",       "arch_qwen2moe",   "arch_qwen3moe",
        "arch_smollm3"}) {
    made.push_back({name});
  }
  for (const char* const name : {"arch_gemma3", "arch_deepseek3", "arch_gpt_oss"}) {
    made.push_back({.name = name, .quantised = TensorType::kQ8_0});
  }
  made.push_back({.name = "arch_qwen3moe", .quantised = TensorType::kQ4_0});
  ModelShape three_heads = small_shape(TensorType::kQ8_0, true);
  three_heads.heads = 9;
  three_heads.kv_heads = 3;
  made.push_back({"three_kv_heads_Q8_0", three_heads});
  made.push_back({"qwen3_BF16", small_shape(TensorType::kBF16, true)});
  made.push_back({"latents", latent_shape()});
  return made;
}

INSTANTIATE_TEST_SUITE_P(Models, RanksInvariance, testing::ValuesIn(cases()),
                         [](const auto& instance) { return instance.param.title(); });

TEST(RanksInvarianceOfTheDefaultModel, TheirNumberChangesNoLogit) {
  REQUIRE_DEFAULT_MODEL();
  const TestModel model(default_model_path());
  Conditions conditions = {.kernels = kernels::available_sets().back(), .chunk = 16};
  const std::vector<Tokens> sequences = {random_tokens(model.config(), 40, 6)};
  const auto alone = run_sequences(model, conditions, sequences);
  for (const std::uint32_t count : {2u, 3u, 4u}) {
    ASSERT_TRUE(
        same_bits(run_over_ranks(model, conditions, count, sequences).front(), alone.front()))
        << count << " ranks";
  }
}

// What a division says about the bytes that are exchanged is what decoders count.
TEST_P(RanksInvariance, TheBytesExchangedAreThoseOfTheDivision) {
  constexpr std::uint32_t kRows = 20;
  for (const std::uint32_t count : {2u, 3u}) {
    ranks::ThreadRanks ranks(count);
    ranks.run([&](ranks::Communicator& mine) {
      Conditions conditions = {.kernels = kernels::available_sets().back()};
      conditions.communicator = &mine;
      std::uint64_t bytes = 0;
      conditions.bytes_exchanged = &bytes;
      run_sequences(model_, conditions, {random_tokens(model_.config, kRows, 3)});
      const ExchangedBytes of_row = exchanged_bytes(model_.config, count);
      EXPECT_EQ(bytes, kRows * (of_row.row + of_row.logits));
    });
  }
}

}  // namespace
}  // namespace pagoda::model
