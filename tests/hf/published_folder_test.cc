// Folders in forms in which models are published, beside that of transformers' save_pretrained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/half.h"
#include "hf/changed_folder.h"
#include "hf/folder.h"
#include "hf/safetensors.h"
#include "hf/test_folder.h"
#include "test_data.h"
#include "text/tokenizer.h"

namespace pagoda::hf {
namespace {

using nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

std::string bf16_bytes(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    const std::uint16_t bits = bf16_from_float(value);
    bytes.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
  return bytes;
}

std::string bytes_of(const gguf::File& file, const char* tensor) {
  const gguf::Tensor* const found = file.find_tensor(tensor);
  if (found == nullptr) return "none";
  return {reinterpret_cast<const char*>(found->bytes.data()), found->bytes.size()};
}

// Devstral and Ministral: one scale for a matrix, and one for its inputs, which are not quantised.
TEST(PublishedFolder, Fp8WithOneScaleForAMatrixBecomesBf16) {
  const auto folder_of = [](const TestTensor& scale) {
    auto folder = std::make_unique<TestFolder>("hf_llama");
    patch_config(*folder, R"({"quantization_config":{"quant_method":"fp8","dequantize":false,)"
                          R"("activation_scheme":"static","modules_to_not_convert":["lm_head"]},)"
                          R"("tie_word_embeddings":true})");
    ordered_json config = ordered_json::parse(read_file(folder->file("config.json")));
    config["quantization_config"]["weight_block_size"] = nullptr;
    folder->write("config.json", config.dump());
    const std::string module = "model.layers.0.mlp.up_proj";
    folder->write(
        "model.safetensors",
        safetensors_text({{module + ".activation_scale", "BF16", {}, bf16_bytes({3})},
                          // 1, 2, -1, 0.5, 0, 448
                          {module + ".weight", "F8_E4M3", {2, 3}, {"\x38\x40\xB8\x30\x00\x7E", 6}},
                          scale}));
    return folder;
  };
  const std::string name = "model.layers.0.mlp.up_proj.weight_scale_inv";
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{}, std::vector<std::uint64_t>{1}}) {
    const auto folder = folder_of({name, "BF16", shape, bf16_bytes({0.25F})});
    const auto file = open_folder(folder->path());
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(bytes_of(file.value(), "blk.0.ffn_up.weight"),
              bf16_bytes({0.25F, 0.5F, -0.25F, 0.125F, 0.0F, 112.0F}));
    EXPECT_EQ(file.value().tensors().size(), 2U) << "and the divisors of the rotation";
  }
  EXPECT_THAT(error_of(*folder_of({name, "BF16", {2}, bf16_bytes({1, 1})})),
              HasSubstr("is not one scale for all of the weights"));
  EXPECT_THAT(
      error_of(*folder_of({"lm_head.weight", "BF16", {2, 3}, bf16_bytes({1, 1, 1, 1, 1, 1})})),
      HasSubstr("weight_scale_inv"));
}

// Granite 4.0 micro, 350m and 1b: a hybrid's model_type, and dense layers alone. Its shared expert,
// gates and ups in one tensor, is the feed-forward layer of Granite 3.
TEST(PublishedFolder, AGraniteHybridOfAttentionAloneIsAGranite) {
  const TestFolder plain("hf_granite");
  const TestFolder hybrid("hf_granite");
  patch_config(hybrid,
               R"({"model_type":"granitemoehybrid","layer_types":["attention","attention"],)"
               R"("num_local_experts":0,"num_experts_per_tok":0,"mamba_n_heads":128,)"
               R"("shared_intermediate_size":48,"intermediate_size":4096,)"
               R"("position_embedding_type":"rope","normalization_function":"rmsnorm"})");
  const auto before = open_folder(plain.path());
  ASSERT_TRUE(before.ok()) << before.error().message;
  std::string text = read_file(plain.file("model.safetensors"));
  const auto tensors = parse_safetensors(std::as_bytes(std::span(text)), "model.safetensors");
  ASSERT_TRUE(tensors.ok());
  std::vector<TestTensor> renamed;
  for (const SafeTensor& tensor : tensors.value()) {
    const std::string bytes(reinterpret_cast<const char*>(tensor.bytes.data()),
                            tensor.bytes.size());
    const std::size_t part = tensor.name.find("mlp.");
    if (part == std::string::npos) {
      renamed.push_back({tensor.name, "BF16", tensor.shape, bytes});
      continue;
    }
    const std::string layer = tensor.name.substr(0, part);
    if (tensor.name.ends_with("down_proj.weight")) {
      renamed.push_back({layer + "shared_mlp.output_linear.weight", "BF16", tensor.shape, bytes});
    } else if (tensor.name.ends_with("gate_proj.weight")) {
      const std::string up =
          bytes_of(before.value(),
                   layer == "model.layers.0." ? "blk.0.ffn_up.weight" : "blk.1.ffn_up.weight");
      renamed.push_back({layer + "shared_mlp.input_linear.weight",
                         "BF16",
                         {2 * tensor.shape[0], tensor.shape[1]},
                         bytes + up});
    }
  }
  hybrid.write("model.safetensors", safetensors_text(renamed));
  const auto after = open_folder(hybrid.path());
  ASSERT_TRUE(after.ok()) << after.error().message;
  const gguf::Metadata& keys = after.value().metadata();
  EXPECT_EQ(keys.text("general.architecture").value(), "granite");
  for (const auto& [key, value] : before.value().metadata().entries()) {
    if (key == "general.name") continue;
    EXPECT_TRUE(keys.contains(key)) << key;
  }
  EXPECT_EQ(keys.unsigned_value("granite.feed_forward_length").value(), 48U);
  EXPECT_FALSE(keys.contains("granite.rope.scaling.finetuned"));
  for (const gguf::Tensor& tensor : before.value().tensors()) {
    const std::string name(tensor.name);
    const std::string layer = name.substr(0, 6);
    if (name.ends_with("ffn_gate.weight")) continue;
    const std::string expected =
        (name.ends_with("ffn_up.weight")
             ? bytes_of(before.value(), (layer + "ffn_gate.weight").c_str())
             : std::string()) +
        bytes_of(before.value(), name.c_str());
    EXPECT_EQ(bytes_of(after.value(), name.c_str()), expected) << name;
  }
  // Where the config says nothing, this type does not rotate.
  patch_config(hybrid, R"({"position_embedding_type":null})");
  const auto still = open_folder(hybrid.path());
  ASSERT_TRUE(still.ok()) << still.error().message;
  EXPECT_FALSE(still.value().metadata().flag_or("granite.rope.scaling.finetuned", true).value());
}

// DeepSeek-R1-0528-Qwen3-8B: the reciprocal of what yarn makes of its factor, 1 + 0.1 ln 4.
TEST(PublishedFolder, AFactorOfYarnsAttentionIsMultiplied) {
  const TestFolder folder("hf_qwen3");
  patch_config(folder, R"({"rope_parameters":{"attn_factor":0.8782488562869419}})");
  const auto file = open_folder(folder.path());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_NEAR(file.value().metadata().number_or("qwen3.rope.scaling.yarn_attn_factor", 0).value(),
              1.0, 1e-12);
}

TEST(PublishedFolder, QwensFlagOfItsNormsIsNoDifference) {
  const TestFolder folder("hf_qwen3moe");
  patch_config(folder, R"({"use_qk_norm":true})");
  EXPECT_EQ(error_of(folder), "no error");
}

// Weights take minutes where they are converted.
TEST(PublishedFolder, FaultsOfTheTokenizerAreFoundBeforeWeightsAreLookedAt) {
  const TestFolder folder("hf_llama");
  folder.write("model.safetensors", safetensors_of({{"score.weight", "F16"}}));
  EXPECT_THAT(error_of(folder), HasSubstr("score.weight"));
  folder.write("tokenizer.json", R"({"model":{"type":"WordPiece"}})");
  EXPECT_THAT(error_of(folder), HasSubstr("WordPiece"));
}

// Gemma 3 of 270M and 1B: a token of images, of which the text model has no row.
TEST(PublishedFolder, AddedTokensBeyondTheEmbeddingAreLeftOut) {
  const TestFolder folder("hf_qwen2_words");
  const std::string path = test_data() + "/hf_tokenizers/qwen2/tokenizer.json";
  ordered_json tokenizer = ordered_json::parse(read_file(path));
  const auto tokens_of = [&] {
    folder.write("tokenizer.json", tokenizer.dump());
    const auto file = open_folder(folder.path());
    EXPECT_TRUE(file.ok()) << file.error().message;
    return text::Tokenizer::load(file.value().metadata()).value();
  };
  const std::size_t rows = tokens_of()->size();
  EXPECT_EQ(rows, 425U);
  tokenizer["added_tokens"].push_back(
      {{"id", 425}, {"content", "<image_soft_token>"}, {"special", true}});
  const auto loaded = tokens_of();
  EXPECT_EQ(loaded->size(), 425U);
  for (const TokenId token : loaded->encode("a<image_soft_token>b", {.special = true})) {
    EXPECT_LT(token.value(), 425U);
  }
  ASSERT_FALSE(loaded->warnings().empty());
  EXPECT_THAT(loaded->warnings().front(),
              AllOf(HasSubstr("<image_soft_token>"), HasSubstr("425"), HasSubstr("left out")));
  // A token of the vocabulary itself makes a table that the model does not fit.
  tokenizer["added_tokens"].erase(tokenizer["added_tokens"].size() - 1);
  tokenizer["model"]["vocab"]["zzzz"] = 425;
  EXPECT_EQ(tokens_of()->size(), 426U);
}

}  // namespace
}  // namespace pagoda::hf
