#include "hf/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hf/changed_folder.h"
#include "hf/test_folder.h"
#include "test_data.h"

namespace pagoda::hf {
namespace {

using nlohmann::ordered_json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct BadConfig {
  const char* name;
  const char* folder;
  const char* patch;  // JSON merge patch of config.json: null removes a field
  std::vector<const char*> says;
};

class RefusedConfig : public testing::TestWithParam<BadConfig> {};

TEST_P(RefusedConfig, IsRefusedByTheNameOfItsField) {
  const TestFolder folder(GetParam().folder);
  patch_config(folder, GetParam().patch);
  const std::string error = error_of(folder);
  EXPECT_THAT(error, HasSubstr("/config.json: "));
  for (const char* const part : GetParam().says) EXPECT_THAT(error, HasSubstr(part));
}

const BadConfig kBadConfigs[] = {
    {"NoModelType", "hf_llama", R"({"model_type":null})", {"model_type is missing"}},
    {"UnknownModelType",
     "hf_llama",
     R"({"model_type":"bert"})",
     {"model_type is \"bert\"", "folders may be of", "qwen3", "smollm3"}},
    {"Hybrid",
     "hf_llama",
     R"({"model_type":"qwen3_next"})",
     {"qwen3_next", "recurrent state is not cached yet"}},
    {"GraniteWithState",
     "hf_granite",
     R"({"model_type":"granitemoehybrid","layer_types":["attention","mamba"],)"
     R"("num_local_experts":0,"shared_intermediate_size":48})",
     {"granitemoehybrid", "recurrent state is not cached yet"}},
    {"GraniteWithExperts",
     "hf_granite",
     R"({"model_type":"granitemoehybrid","layer_types":["attention","attention"],)"
     R"("num_local_experts":8,"shared_intermediate_size":48})",
     {"granitemoehybrid", "recurrent state is not cached yet"}},
    {"AttentionFactor",
     "hf_qwen3",
     R"({"rope_parameters":{"attn_factor":0}})",
     {"rope_parameters.attn_factor is 0"}},
    {"QueryNorms",
     "hf_llama",
     R"({"use_qk_norm":true})",
     {"use_qk_norm is true", "norms of queries and keys"}},
    {"NoLayers", "hf_llama", R"({"num_hidden_layers":null})", {"num_hidden_layers is missing"}},
    {"NoWidth", "hf_llama", R"({"hidden_size":null})", {"hidden_size is missing"}},
    {"NoHidden", "hf_llama", R"({"intermediate_size":null})", {"intermediate_size is missing"}},
    {"NoHeads", "hf_llama", R"({"num_attention_heads":null})", {"num_attention_heads is missing"}},
    {"NoContext",
     "hf_llama",
     R"({"max_position_embeddings":null})",
     {"max_position_embeddings is missing"}},
    {"NoKvHeads",
     "hf_qwen2",
     R"({"num_key_value_heads":null})",
     {"num_key_value_heads is missing"}},
    {"WidthIsText", "hf_llama", R"({"hidden_size":"32"})", {"hidden_size is \"32\"", "an integer"}},
    {"LayersBelowZero", "hf_llama", R"({"num_hidden_layers":-1})", {"num_hidden_layers is -1"}},
    {"NoHead", "hf_llama", R"({"num_attention_heads":0})", {"num_attention_heads is 0"}},
    {"Activation", "hf_llama", R"({"hidden_act":"relu"})", {"hidden_act is \"relu\"", "silu"}},
    {"GemmaActivation",
     "hf_gemma3",
     R"({"hidden_activation":"gelu"})",
     {"hidden_activation is \"gelu\"", "gelu_pytorch_tanh"}},
    {"ScoreCap",
     "hf_llama",
     R"({"attn_logit_softcapping":50.0})",
     {"attn_logit_softcapping is 50.0", "soft caps"}},
    {"LogitCap",
     "hf_qwen3",
     R"({"final_logit_softcapping":30.0})",
     {"final_logit_softcapping is 30.0"}},
    {"Clamp", "hf_olmo2", R"({"clip_qkv":8.0})", {"clip_qkv is 8.0"}},
    {"Bidirectional",
     "hf_gemma3",
     R"({"use_bidirectional_attention":true})",
     {"use_bidirectional_attention is true"}},
    {"DynamicRope",
     "hf_llama",
     R"({"rope_scaling":{"rope_type":"dynamic","factor":2.0}})",
     {"rope_scaling.rope_type is \"dynamic\""}},
    {"Longrope",
     "hf_phi3",
     R"({"rope_parameters":{"rope_type":"longrope","short_factor":[1],"long_factor":[1]}})",
     {"rope_parameters.short_factor", "numbers above 0"}},
    {"PhisYarnIsLongrope",
     "hf_phi3",
     R"({"rope_parameters":{"rope_type":"yarn","factor":2.0}})",
     {"rope_parameters.short_factor is missing"}},
    {"RopeField",
     "hf_llama",
     R"({"rope_scaling":{"mrope_section":[1,2,3]}})",
     {"rope_scaling.mrope_section is [1,2,3]"}},
    {"TwoRopes",
     "hf_qwen3",
     R"({"rope_scaling":{"rope_type":"linear","factor":2.0}})",
     {"rope_scaling", "rope_parameters says something else"}},
    {"YarnBounds", "hf_qwen3", R"({"rope_parameters":{"truncate":false}})", {"truncate is false"}},
    {"NoFactor",
     "hf_llama",
     R"({"rope_scaling":{"factor":null}})",
     {"rope_scaling.factor is missing"}},
    {"FactorBelowZero",
     "hf_llama",
     R"({"rope_scaling":{"factor":-8}})",
     {"rope_scaling.factor is -8"}},
    {"RopeOfWindows",
     "hf_olmo3",
     R"({"rope_parameters":{"sliding_attention":{"rope_theta":20000.0}}})",
     {"rope_parameters", "with a window"}},
    {"OddRotation",
     "hf_phi3",
     R"({"rope_parameters":{"partial_rotary_factor":0.45}})",
     {"7 of 16 dimensions"}},
    {"NoRopeLayers",
     "hf_smollm3",
     R"({"no_rope_layers":[1,1,0,1]})",
     {"no_rope_layers is [1,1,0,1]", "every fourth"}},
    {"LinearAttention",
     "hf_olmo3",
     R"({"layer_types":["linear_attention","x","x","x"]})",
     {"layer_types", "recurrent state is not cached yet"}},
    {"ChunkedAttention",
     "hf_olmo3",
     R"({"layer_types":["chunked_attention","x","x","x"]})",
     {"layer_types", "sliding_attention"}},
    {"FewLayerTypes",
     "hf_olmo3",
     R"({"layer_types":["full_attention"]})",
     {"layer_types", "4 layers"}},
    {"Pattern",
     "hf_exaone4",
     R"({"sliding_window_pattern":"LX"})",
     {"sliding_window_pattern is \"LX\""}},
    {"QueryScale", "hf_gemma3", R"({"query_pre_attn_scalar":0})", {"query_pre_attn_scalar is 0"}},
    {"Awq",
     "hf_llama",
     R"({"quantization_config":{"quant_method":"awq"}})",
     {"quant_method is awq", "use the unquantised model, or a GGUF file"}},
    {"Gptq", "hf_llama", R"({"quantization_config":{"quant_method":"gptq"}})", {"gptq", "GGUF"}},
    {"Bitsandbytes",
     "hf_llama",
     R"({"quantization_config":{"quant_method":"bitsandbytes"}})",
     {"bitsandbytes", "GGUF"}},
    {"CompressedTensors",
     "hf_llama",
     R"({"quantization_config":{"quant_method":"compressed-tensors"}})",
     {"compressed-tensors", "GGUF"}},
    {"NotCausal", "hf_qwen3", R"({"is_causal":false})", {"is_causal is false", "later tokens"}},
    {"OuterModelType",
     "hf_gemma3_images",
     R"({"model_type":"paligemma"})",
     {"model_type is \"paligemma\"", "gemma3, gemma4, gemma4_unified, mistral3"}},
    {"DenseLayers",
     "hf_glm47_flash",
     R"({"mlp_layer_types":["sparse","dense"]})",
     {"mlp_layer_types", "expected dense layers, then sparse ones"}},
    {"Fp8OfTensors",
     "hf_llama",
     R"({"quantization_config":{"quant_method":"fp8"}})",
     {"weight_block_size is missing", "fp8"}},
};

INSTANTIATE_TEST_SUITE_P(Table, RefusedConfig, testing::ValuesIn(kBadConfigs),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Folder, WhatIsMissingIsSaidWithWhatWasLookedFor) {
  const TestFolder empty;
  EXPECT_THAT(error_of(empty),
              AllOf(HasSubstr(empty.path()), HasSubstr("config.json and *.safetensors")));
  const TestFolder folder("hf_llama");
  folder.remove("model.safetensors");
  EXPECT_THAT(error_of(folder), AllOf(HasSubstr("neither model.safetensors nor "
                                                "model.safetensors.index.json")));
  folder.write("adapter_model.safetensors", "x");
  EXPECT_THAT(error_of(folder), HasSubstr("an adapter"));
  folder.write("pytorch_model.bin", "x");
  EXPECT_THAT(error_of(folder), HasSubstr("convert its weights to safetensors"));
}

TEST(Folder, AFileThatIsNoJsonIsNamed) {
  const TestFolder folder("hf_llama");
  folder.write("config.json", "{\"a\":1,\"a\":2}");
  EXPECT_THAT(error_of(folder), AllOf(HasSubstr("config.json: "), HasSubstr("twice")));
  folder.write("config.json", std::string(100'000, '['));
  EXPECT_THAT(error_of(folder), AllOf(HasSubstr("config.json: "), HasSubstr("deeper")));
  folder.write("config.json", "[]");
  EXPECT_THAT(error_of(folder), AllOf(HasSubstr("config.json: "), HasSubstr("object")));
}

TEST(Folder, AnIndexMustAgreeWithItsShards) {
  const auto with_map = [](const auto& change) {
    const TestFolder folder("hf_mistral");
    const std::string name = "model.safetensors.index.json";
    ordered_json index = ordered_json::parse(read_file(folder.file(name)));
    change(index);
    folder.write(name, index.dump());
    return error_of(folder);
  };
  const std::string first = "model-00001-of-00003.safetensors";
  EXPECT_EQ(with_map([](ordered_json&) {}), "no error");
  EXPECT_THAT(with_map([&](ordered_json& index) {
                index["weight_map"]["model.norm.weight"] = "model-00004-of-00003.safetensors";
              }),
              AllOf(HasSubstr("index.json"), HasSubstr("model-00004-of-00003.safetensors"),
                    HasSubstr("model.norm.weight")));
  EXPECT_THAT(with_map([&](ordered_json& index) {
                index["weight_map"]["model.layers.9.x.weight"] = first;
              }),
              AllOf(HasSubstr(first), HasSubstr("'model.layers.9.x.weight' is missing")));
  EXPECT_THAT(with_map([](ordered_json& index) {
                index["weight_map"]["model.norm.weight"] = "../hf_llama/model.safetensors";
              }),
              HasSubstr("not in the folder"));
  EXPECT_THAT(with_map([](ordered_json& index) {
                index["weight_map"] = {{"a", 3}};
              }),
              HasSubstr("weight_map names 3"));
  EXPECT_THAT(with_map([](ordered_json& index) { index.erase("weight_map"); }),
              HasSubstr("weight_map is missing"));
  EXPECT_THAT(with_map([](ordered_json& index) { index["weight_map"] = ordered_json::object(); }),
              HasSubstr("weight_map is empty"));
}

TEST(Folder, AShardThatIsMissingIsNamed) {
  const TestFolder folder("hf_mistral");
  folder.remove("model-00002-of-00003.safetensors");
  EXPECT_THAT(error_of(folder), HasSubstr("names 'model-00002-of-00003.safetensors'"));
}

TEST(Folder, TensorsThatTheModelHasNoPlaceForAreNamed) {
  const auto with = [](const std::vector<std::pair<std::string, std::string>>& tensors) {
    const TestFolder folder("hf_llama");
    folder.write("model.safetensors", safetensors_of(tensors));
    return error_of(folder);
  };
  EXPECT_THAT(with({{"model.layers.0.self_attn.extra.weight", "F16"}}),
              HasSubstr("tensor 'model.layers.0.self_attn.extra.weight' is of no use"));
  EXPECT_THAT(with({{"model.layers.2.mlp.up_proj.weight", "F16"}}), HasSubstr("of no use"));
  EXPECT_THAT(with({{"score.weight", "F16"}}), HasSubstr("'score.weight' is of no use"));
  EXPECT_THAT(with({{"vision_tower.x.weight", "F16"}}), HasSubstr("of no use"));
  EXPECT_THAT(with({{"model.norm.weight", "I64"}}),
              AllOf(HasSubstr("'model.norm.weight'"), HasSubstr("dtype I64")));
  EXPECT_THAT(with({{"model.norm.weight", "F16"}}),
              AllOf(HasSubstr("lm_head.weight"), HasSubstr("tie_word_embeddings")));
  // Of the types that this version does not read, those are no error that it does not need.
  EXPECT_THAT(
      with({{"model.layers.0.self_attn.rotary_emb.inv_freq", "I64"}, {"lm_head.weight", "F16"}}),
      HasSubstr("no error"));
}

TEST(Folder, ATensorInTwoShardsIsRefused) {
  const TestFolder folder("hf_llama");
  folder.remove("model.safetensors");
  folder.write("a.safetensors", safetensors_of({{"lm_head.weight", "F16"}}));
  folder.write("b.safetensors", safetensors_of({{"lm_head.weight", "F16"}}));
  EXPECT_THAT(error_of(folder), AllOf(HasSubstr("b.safetensors: tensor 'lm_head.weight'"),
                                      HasSubstr("is also in"), HasSubstr("a.safetensors")));
}

TEST(Folder, Fp8WithoutItsScalesIsRefused) {
  const TestFolder folder("hf_llama_fp8");
  patch_config(folder, R"({"quantization_config":{"weight_block_size":[16,16]}})");
  EXPECT_THAT(error_of(folder), AllOf(HasSubstr("_scale_inv"), HasSubstr("16 x 16")));
  patch_config(folder, R"({"quantization_config":null})");
  EXPECT_THAT(error_of(folder), HasSubstr("weight_scale_inv"));
}

TEST(Folder, TensorsThatAreNotAlignedAreCopiedToTheBit) {
  const TestFolder folder("hf_llama");
  const auto before = open_folder(folder.path());
  ASSERT_TRUE(before.ok()) << before.error().message;
  // One more space in the header moves all data by a byte.
  std::string file = read_file(folder.file("model.safetensors"));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  file.insert(8 + length, " ");
  ++length;
  std::memcpy(file.data(), &length, 8);
  const TestFolder moved("hf_llama");
  moved.write("model.safetensors", file);
  const auto after = open_folder(moved.path());
  ASSERT_TRUE(after.ok()) << after.error().message;
  ASSERT_EQ(after.value().tensors().size(), before.value().tensors().size());
  for (const gguf::Tensor& tensor : before.value().tensors()) {
    const gguf::Tensor* const copy = after.value().find_tensor(tensor.name);
    ASSERT_NE(copy, nullptr) << tensor.name;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(copy->bytes.data()) % 8, 0U) << tensor.name;
    ASSERT_EQ(copy->bytes.size(), tensor.bytes.size());
    EXPECT_EQ(std::memcmp(copy->bytes.data(), tensor.bytes.data(), tensor.bytes.size()), 0);
  }
}

TEST(Folder, EveryFileWhoseBytesMatterIsAPart) {
  const TestFolder folder("hf_mistral");
  folder.write("generation_config.json", "{}");
  folder.write("chat_template.jinja", "x");
  folder.write("README.md", "not read");
  const auto file = open_folder(folder.path());
  ASSERT_TRUE(file.ok()) << file.error().message;
  std::vector<std::string> names;
  for (const gguf::OpenedPart& part : file.value().opened_parts()) {
    names.push_back(part.path.substr(folder.path().size() + 1));
    EXPECT_GE(part.descriptor, 0);
  }
  EXPECT_THAT(
      names,
      ElementsAre("config.json", "model.safetensors.index.json", "model-00001-of-00003.safetensors",
                  "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors",
                  "generation_config.json", "chat_template.jinja"));
  EXPECT_GT(file.value().bytes(), 0U);
  EXPECT_EQ(file.value().version(), 0U);
  // Tensors can still be read after their memory went back.
  const gguf::Tensor* const norm = file.value().find_tensor("output_norm.weight");
  ASSERT_NE(norm, nullptr);
  const std::vector<std::byte> bytes(norm->bytes.begin(), norm->bytes.end());
  file.value().release_pages();
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), norm->bytes.begin()));
}

TEST(Folder, IsNamedAfterItsRepositoryInAHuggingFaceCache) {
  const TestFolder cache;
  const std::string snapshot = cache.path() + "/models--Qwen--Qwen3-8B/snapshots/0123abcd";
  std::filesystem::create_directories(snapshot);
  std::filesystem::copy(test_data() + "/models/hf_qwen3", snapshot);
  for (const std::string& path : {snapshot, snapshot + "/"}) {
    const auto file = open_folder(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(file.value().metadata().text("general.name").value(), "Qwen3-8B");
  }
}

}  // namespace
}  // namespace pagoda::hf
