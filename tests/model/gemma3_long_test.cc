// 700 positions, more than the 512 that most layers of the model see, by every fast kernel set.
#include "model/gemma3.h"

namespace pagoda::model {
namespace {

constexpr std::size_t kPositions = 700;

TEST(Gemma3, EveryFastSetAgreesWithTheOracleOnRealText) {
  REQUIRE_GEMMA_MODEL();
  const TestModel model(gemma_path());
  const LogitDigest oracle = read_logit_digest(kGemmaDigest);
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    if (set == &kernels::ref_set(set->numerics)) continue;
    if (set->numerics == kernels::Numerics::kInt8Bf16) {
      expect_agreement(model, oracle, *set, kGemmaInt8Bf16, kPositions);
    } else {
      for (const AgreementBound& bound : {kGemmaF32, kGemmaBF16}) {
        expect_agreement(model, oracle, *set, bound, kPositions);
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::model
