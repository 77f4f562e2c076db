// What a GPU runs and what it refuses by name; no GPU is needed to ask.
#include <gtest/gtest.h>

#include "model/gpu_decoder.h"
#include "model/seeded_model.h"
#include "model/test_model.h"

namespace pagoda::model {
namespace {

using kv::memory::Element;

std::string refusal(const Config& config, const GpuDecoderOptions& options = {}) {
  const Status checked = GpuDecoder::check(config, options);
  return checked.ok() ? "" : checked.error().message;
}

TEST(GpuCheck, EveryArchitectureRuns) {
  for (const char* const name :
       {"deepseek2",  "deepseek3",     "exaone4",       "gemma2",      "gemma3",   "gemma4",
        "gemma4_moe", "gemma4_shared", "glm4",          "glm47_flash", "gpt_oss",  "granite",
        "granitemoe", "mistral3",      "mixtral",       "qwen2moe",    "qwen3moe", "olmo2",
        "olmo3",      "phi3",          "phi3_longrope", "qwen2",       "qwen3",    "smollm3"}) {
    const TestModel model(test_model_path(std::string("arch_") + name + ".gguf"));
    EXPECT_EQ(refusal(model.config()), "") << name;
  }
}

TEST(GpuCheck, HeadsHaveRowsOfWholeSixteenBytes) {
  for (const std::uint32_t dim : {16u, 64u, 80u, 96u, 112u, 128u, 192u, 256u, 512u}) {
    EXPECT_EQ(refusal(SeededModel({.head_dim = dim}).config()), "") << dim;
  }
  for (const std::uint32_t dim : {8u, 72u, 528u}) {
    EXPECT_EQ(refusal(SeededModel({.head_dim = dim}).config()),
              "the GPU runs heads of 16, 32, … 512 dimensions and latents of up to 576; this "
              "model's have " +
                  std::to_string(dim) + " key and " + std::to_string(dim) +
                  " value dimensions: use `device=cpu`");
  }
  // Latents of 40 values: 80 bytes in bf16, 40 in fp8.
  const TestModel latents(test_model_path("arch_deepseek3.gguf"));
  EXPECT_EQ(refusal(latents.config(), {.kv_element = Element::kBF16}), "");
  EXPECT_NE(refusal(latents.config(), {.kv_element = Element::kE4M3}), "");
  // 576 values a row, of which more than 512 are values: the kernel has no room for them.
  Config wide = latents.config();
  wide.latent.rank = wide.value_dim = 528;
  wide.key_dim = 576;
  EXPECT_NE(refusal(wide, {.kv_element = Element::kBF16}), "");
}

TEST(GpuCheck, WhatItDoesNotRunIsNamed) {
  Config config = SeededModel({}).config();
  config.experts = {.router = {.experts = 513, .chosen = 2}, .hidden_width = 64};
  EXPECT_EQ(refusal(config),
            "this model has more than 512 experts, 32 chosen ones or 32 groups of them, which the "
            "GPU does not run: use `device=cpu`");
  const Config plain = SeededModel({}).config();
  EXPECT_EQ(refusal(plain, {.block_tokens = 24}),
            "`block_size`: is 24, but the GPU takes 16, 32, 64 or 128");
  EXPECT_EQ(refusal(plain, {.kv_element = Element::kF32}),
            "`kv_cache_dtype`: the GPU keeps keys and values as bf16, fp16 or fp8");
}

}  // namespace
}  // namespace pagoda::model
