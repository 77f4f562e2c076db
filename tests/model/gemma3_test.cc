// Gemma 3 270M (Q4_K_M) against transformers on 700 positions of WikiText-2, more than the 512 that
// most of its layers see. Needs the file that ./run --model gemma3 downloads.
#include <gtest/gtest.h>

#include "default_model.h"
#include "model/logit_agreement.h"

namespace pagoda::model {
namespace {

using kv::memory::Element;

constexpr std::size_t kPositions = 700;

// The bounds of the default model (oracle_test.cc).
constexpr AgreementBound kF32 = {Element::kF32, 0.995, 1e-4};
constexpr AgreementBound kBF16 = {Element::kBF16, 0.99, 1e-4};
constexpr AgreementBound kInt8Bf16 = {Element::kBF16, 0.985, 5e-4};

TEST(Gemma3, EveryFastSetAgreesWithTheOracleOnRealText) {
  const std::string path = cached_model_path("gemma-3-270m-q4_k_m.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "./run --model gemma3 downloads " << path;
  const TestModel model(path);
  const LogitDigest oracle = read_logit_digest("gemma3_wikitext2.bin");
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    if (set == &kernels::ref_set(set->numerics)) continue;
    if (set->numerics == kernels::Numerics::kInt8Bf16) {
      expect_agreement(model, oracle, *set, kInt8Bf16, kPositions);
    } else {
      for (const AgreementBound& bound : {kF32, kBF16}) {
        expect_agreement(model, oracle, *set, bound, kPositions);
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::model
