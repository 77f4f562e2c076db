// Experts of folders in GGUF's layouts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hf/folder.h"
#include "hf/test_folder.h"

namespace pagoda::hf {
namespace {

using testing::HasSubstr;

constexpr const char* kGptOssConfig =
    R"({"model_type":"gpt_oss","hidden_size":64,"intermediate_size":32,"num_hidden_layers":1,)"
    R"("num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"num_local_experts":2,)"
    R"("num_experts_per_tok":1,"max_position_embeddings":512,"tie_word_embeddings":true,)"
    R"("rope_scaling":{"rope_type":"yarn","factor":8.0,"original_max_position_embeddings":64,)"
    R"("truncate":false},"quantization_config":{"quant_method":"mxfp4"}})";
constexpr const char* kGraniteConfig =
    R"({"model_type":"granitemoe","hidden_size":4,"intermediate_size":2,"num_hidden_layers":1,)"
    R"("num_attention_heads":1,"num_local_experts":2,"num_experts_per_tok":1,)"
    R"("max_position_embeddings":512,"tie_word_embeddings":true})";

const std::string kExperts = "model.layers.0.mlp.experts.";

// Bytes that tell their places apart.
std::string counted(std::size_t bytes, unsigned factor = 37) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i * factor % 251);
  return text;
}

unsigned byte_at(std::string_view bytes, std::size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

std::string_view bytes_of(const gguf::File& file, const std::string& name) {
  const gguf::Tensor* const tensor = file.find_tensor(name);
  if (tensor == nullptr) {
    ADD_FAILURE() << name << " is missing";
    return {};
  }
  return {reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size()};
}

// The 4-bit value of a column, as safetensors of gpt-oss have it and as GGUF files have it.
unsigned folder_value(const std::string& blocks, std::size_t row, std::size_t column) {
  const unsigned both = byte_at(blocks, row * 32 + column / 2);  // 64 columns are 32 bytes
  return column % 2 == 0 ? both & 15U : both >> 4;
}
unsigned gguf_value(std::string_view bytes, std::size_t row, std::size_t column) {
  const std::size_t block = row * 2 + column / 32;
  const unsigned both = byte_at(bytes, block * 17 + 1 + column % 16);
  return column % 32 < 16 ? both & 15U : both >> 4;
}

TEST(GptOssExperts, InMxfp4KeepTheirValuesAndScales) {
  const TestFolder folder;
  folder.write("config.json", kGptOssConfig);
  const std::string blocks = counted(2 * 64 * 2 * 16);
  const std::string scales = counted(2 * 64 * 2, 11);
  folder.write("model.safetensors",
               safetensors_text({{kExperts + "gate_up_proj_blocks", "U8", {2, 64, 2, 16}, blocks},
                                 {kExperts + "gate_up_proj_scales", "U8", {2, 64, 2}, scales}}));
  const auto file = open_folder(folder.path());
  ASSERT_TRUE(file.ok()) << file.error().message;
  for (const bool up : {false, true}) {
    const std::string name = up ? "blk.0.ffn_up_exps.weight" : "blk.0.ffn_gate_exps.weight";
    const std::string_view bytes = bytes_of(file.value(), name);
    ASSERT_EQ(bytes.size(), 2U * 32 * 2 * 17);
    const gguf::Tensor& tensor = *file.value().find_tensor(name);
    EXPECT_EQ(tensor.type, gguf::TensorType::kMXFP4);
    EXPECT_EQ(tensor.extents, (std::array<std::uint64_t, 4>{64, 32, 2, 1}));
    for (std::size_t row = 0; row < 64; ++row) {  // of both experts
      const std::size_t from = 2 * row + (up ? 1 : 0);
      for (std::size_t column = 0; column < 64; ++column) {
        ASSERT_EQ(gguf_value(bytes, row, column), folder_value(blocks, from, column));
        ASSERT_EQ(byte_at(bytes, (row * 2 + column / 32) * 17),
                  byte_at(scales, from * 2 + column / 32));
      }
    }
  }
}

TEST(GptOssExperts, WithoutScalesAreRefused) {
  const TestFolder folder;
  folder.write("config.json", kGptOssConfig);
  folder.write("model.safetensors",
               safetensors_text(
                   {{kExperts + "down_proj_blocks", "U8", {2, 64, 1, 16}, counted(2 * 64 * 16)}}));
  const auto file = open_folder(folder.path());
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("down_proj_blocks' at offset"));
  EXPECT_THAT(file.error().message, HasSubstr("has no scales"));
}

TEST(GptOssExperts, ThatAreNotQuantisedAreTransposed) {
  const TestFolder folder;
  folder.write("config.json", kGptOssConfig);
  const std::string gate_up = counted(2 * 3 * 4 * 2);  // [experts, width 3, 2 * hidden 2] of bf16
  const std::string down = counted(2 * 2 * 3 * 2, 5);  // [experts, hidden 2, width 3]
  const std::string bias = counted(2 * 4 * 2, 7);
  folder.write("model.safetensors",
               safetensors_text({{kExperts + "gate_up_proj", "BF16", {2, 3, 4}, gate_up},
                                 {kExperts + "gate_up_proj_bias", "BF16", {2, 4}, bias},
                                 {kExperts + "down_proj", "BF16", {2, 2, 3}, down}}));
  const auto file = open_folder(folder.path());
  ASSERT_TRUE(file.ok()) << file.error().message;
  for (std::size_t expert = 0; expert < 2; ++expert) {
    for (std::size_t row = 0; row < 2; ++row) {
      for (std::size_t column = 0; column < 3; ++column) {
        const std::size_t to = (expert * 2 + row) * 3 + column;
        const std::size_t from = (expert * 3 + column) * 4 + 2 * row;
        EXPECT_EQ(bytes_of(file.value(), "blk.0.ffn_gate_exps.weight").substr(to * 2, 2),
                  gate_up.substr(from * 2, 2));
        EXPECT_EQ(bytes_of(file.value(), "blk.0.ffn_up_exps.weight").substr(to * 2, 2),
                  gate_up.substr((from + 1) * 2, 2));
        const std::size_t down_to = (expert * 3 + column) * 2 + row;
        const std::size_t down_from = (expert * 2 + row) * 3 + column;
        EXPECT_EQ(bytes_of(file.value(), "blk.0.ffn_down_exps.weight").substr(down_to * 2, 2),
                  down.substr(down_from * 2, 2));
      }
      const std::size_t place = expert * 2 + row;
      EXPECT_EQ(bytes_of(file.value(), "blk.0.ffn_gate_exps.bias").substr(place * 2, 2),
                bias.substr(place * 4, 2));
      EXPECT_EQ(bytes_of(file.value(), "blk.0.ffn_up_exps.bias").substr(place * 2, 2),
                bias.substr(place * 4 + 2, 2));
    }
  }
}

TEST(GraniteExperts, AreAMatrixEachWithGatesBeforeUps) {
  const TestFolder folder;
  folder.write("config.json", kGraniteConfig);
  const std::string input = counted(2 * 4 * 4 * 2);  // [experts, 2 * hidden 2, width 4] of bf16
  const std::string moe = "model.layers.0.block_sparse_moe.";
  folder.write("model.safetensors",
               safetensors_text({{moe + "input_linear.weight", "BF16", {2, 4, 4}, input}}));
  const auto file = open_folder(folder.path());
  ASSERT_TRUE(file.ok()) << file.error().message;
  const gguf::File& model = file.value();
  EXPECT_EQ(bytes_of(model, "blk.0.ffn_gate.0.weight"), input.substr(0, 16));
  EXPECT_EQ(bytes_of(model, "blk.0.ffn_up.0.weight"), input.substr(16, 16));
  EXPECT_EQ(bytes_of(model, "blk.0.ffn_gate.1.weight"), input.substr(32, 16));
  EXPECT_EQ(bytes_of(model, "blk.0.ffn_up.1.weight"), input.substr(48, 16));
  EXPECT_EQ(model.metadata().unsigned_value("granitemoe.expert_count").value(), 2U);
}

}  // namespace
}  // namespace pagoda::hf
