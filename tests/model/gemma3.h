// Gemma 3 270M (Q4_K_M) against transformers on WikiText-2. Its file is the one that ./test and
// ./run --model gemma3 download: tests without it are skipped, on the build machine too, as its
// terms are for people to accept.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "default_model.h"
#include "model/logit_agreement.h"
#include "skip_reasons.h"

namespace pagoda::model {

// The bounds of the default model (oracle_test.cc).
inline constexpr AgreementBound kGemmaF32 = {kv::memory::Element::kF32, 0.995, 1e-4};
inline constexpr AgreementBound kGemmaBF16 = {kv::memory::Element::kBF16, 0.99, 1e-4};
inline constexpr AgreementBound kGemmaInt8Bf16 = {kv::memory::Element::kBF16, 0.985, 5e-4};
inline constexpr const char* kGemmaDigest = "gemma3_wikitext2.bin";

inline std::string gemma_path() { return cached_model_path("gemma-3-270m-q4_k_m.gguf"); }

}  // namespace pagoda::model

// The first line of a test that needs it.
#define REQUIRE_GEMMA_MODEL()                                                        \
  do {                                                                               \
    if (!std::filesystem::exists(::pagoda::model::gemma_path())) {                   \
      GTEST_SKIP() << ::pagoda::kNeedsGemma << ": " << ::pagoda::model::gemma_path() \
                   << " is not there; ./test or pagoda pull gemma3 downloads it";    \
    }                                                                                \
  } while (false)
