// The first positions of a text, by the kernel set that this machine runs.
#include "model/gemma3.h"

namespace pagoda::model {
namespace {

constexpr std::size_t kFirstPositions = 100;

TEST(Gemma3, TheFastestSetAgreesWithTheOracleOnTheFirstPositions) {
  REQUIRE_GEMMA_MODEL();
  const TestModel model(gemma_path());
  const LogitDigest oracle = read_logit_digest(kGemmaDigest);
  const kernels::KernelSet& set = *kernels::select_set().value();
  const bool is_int8 = set.numerics == kernels::Numerics::kInt8Bf16;
  expect_agreement(model, oracle, set, is_int8 ? kGemmaInt8Bf16 : kGemmaF32, kFirstPositions);
}

}  // namespace
}  // namespace pagoda::model
