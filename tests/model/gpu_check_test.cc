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
       {"deepseek2",   "deepseek3",     "deepseek3_fp8", "exaone4",       "gemma2",
        "gemma3",      "gemma4",        "gemma4_moe",    "gemma4_shared", "glm4",
        "glm47_flash", "gpt_oss",       "granite",       "granitemoe",    "mistral3",
        "mixtral",     "qwen2moe",      "qwen3moe",      "olmo2",         "olmo3",
        "phi3",        "phi3_longrope", "qwen2",         "qwen3",         "smollm3"}) {
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
  EXPECT_EQ(refusal(latents.config(), {.kv_cache_dtype = Element::kBF16}), "");
  EXPECT_NE(refusal(latents.config(), {.kv_cache_dtype = Element::kE4M3}), "");
  const TestModel wider(test_model_path("arch_deepseek3_fp8.gguf"));  // of 48
  EXPECT_EQ(refusal(wider.config(), {.kv_cache_dtype = Element::kE4M3}), "");
  // 576 values a row, of which more than 512 are values: the kernel has no room for them.
  Config wide = latents.config();
  wide.latent.rank = wide.value_dim = 528;
  wide.key_dim = 576;
  EXPECT_NE(refusal(wide, {.kv_cache_dtype = Element::kBF16}), "");
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
  const char* const kept =
      "`kv_cache_dtype`: the GPU keeps keys and values as bf16, fp16, fp8, fp8_e5m2, int8 or int4, "
      "as k8v4, or bf16 or fp16 keys with int8 or fp8 values";
  const Element all[] = {Element::kF32,  Element::kF16,  Element::kBF16, Element::kE4M3,
                         Element::kE5M2, Element::kInt8, Element::kInt4};
  std::size_t taken = 0;
  for (const Element keys : all) {
    for (const Element values : all) {
      const std::string said =
          refusal(plain, {.kv_cache_dtype = kv::memory::Elements(keys, values)});
      if (said.empty()) {
        ++taken;
      } else {
        EXPECT_EQ(said, kept);
      }
    }
  }
  EXPECT_EQ(taken, 11u);
  // Heads of 48 dimensions have no whole groups of 32.
  EXPECT_NE(refusal(SeededModel({.head_dim = 48}).config(), {.kv_cache_dtype = Element::kInt4}),
            "");
  KvCacheDtype skipping = Element::kInt8;
  skipping.skip_layers = {1};
  EXPECT_EQ(refusal(plain, {.kv_cache_dtype = skipping}), "");
  skipping.skip_layers = {2};
  EXPECT_EQ(refusal(plain, {.kv_cache_dtype = skipping}),
            "`kv_cache_dtype_skip_layers`: 2, but the model has layers 0 to 1");
  const TestModel own_norms(test_model_path("arch_gemma4_moe.gguf"));
  const auto random = GpuWeights::random(own_norms.config(), kernels::cuda::WeightFormat::kBf16, 1);
  ASSERT_FALSE(random.ok());
  EXPECT_EQ(random.error().message,
            "`random_weights`: experts with norms of their own are not made");
}

// Widths are whole tiles of 16 rows and 64 columns, so that a format's bytes are those of its
// chunks of 1024 weights; norms and the embedding are the same in all.
TEST(GpuCheck, BytesOfWeightsFollowFromTheirTypes) {
  constexpr std::uint64_t kLayer = (256 + 128 + 128) * 256 + 256 * 256 + 3 * 384 * 256;
  constexpr std::uint64_t kWeights = 2 * kLayer + 512 * 256;  // and the output
  constexpr std::uint64_t kRest = 512 * 256 * 2 + 5 * 256 * 4;
  const struct {
    gguf::TensorType type;
    std::uint64_t chunk_bytes;
  } cases[] = {{gguf::TensorType::kBF16, 2048}, {gguf::TensorType::kQ8_0, 1088},
               {gguf::TensorType::kQ4_0, 576},  {gguf::TensorType::kQ4_K, 640},
               {gguf::TensorType::kQ6_K, 1152}, {gguf::TensorType::kMXFP4, 576},
               {gguf::TensorType::kQ5_K, 2048}};  // has no format of its own
  for (const auto& tested : cases) {
    const SeededModel model({.type = tested.type});
    EXPECT_EQ(GpuWeights::packed_bytes(model.weights()).value(),
              kWeights / 1024 * tested.chunk_bytes + kRest)
        << gguf::tensor_type_info(tested.type).name;
  }
}

}  // namespace
}  // namespace pagoda::model
