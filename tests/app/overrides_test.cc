// The flags that change a model's configuration: the same as a model that says so itself, by
// another KV address, or an error that names the field.
#include "hf/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "app/loaded_model.h"
#include "hf/test_folder.h"
#include "kernels/select.h"
#include "model/rows_description.h"
#include "test_data.h"

namespace pagoda::app {
namespace {

using hf::ConfigOverrides;
using testing::HasSubstr;

constexpr const char* kPlain = R"({"rope_type": "default"})";

std::string model_path(const std::string& name) { return test_data() + "/models/" + name; }

model::Config config_of(const std::string& path, const std::string& rope_scaling = {}) {
  const auto file = open_model_file(path, {.fields = {}, .rope_scaling = rope_scaling});
  EXPECT_TRUE(file.ok()) << file.error().message;
  auto config = model::read_config(file.value());
  EXPECT_TRUE(config.ok()) << config.error().message;
  return config.value();
}

auto rotation_of(const model::Config& config) {
  const model::RopeConfig& rope = config.ropes.front();
  return std::tuple(rope.base, rope.dims, rope.pairing, rope.scaling, rope.factor,
                    rope.original_context, rope.attention_factor, rope.yarn_beta_fast,
                    rope.yarn_beta_slow);
}

struct ScaledModel {
  const char* name;
  const char* scaling;  // what the model says itself
};
constexpr ScaledModel kScaled[] = {
    {"tiny_linear.gguf", R"({"rope_type": "linear", "factor": 4.0})"},
    {"tiny_yarn.gguf",
     R"({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32})"},
    {"hf_qwen3", R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32})"},
};

TEST(RopeScaling, TakesThePlaceOfTheModelsOwn) {
  for (const ScaledModel& model : kScaled) {
    const std::string path = model_path(model.name);
    const model::Config own = config_of(path);
    const model::Config plain = config_of(path, kPlain);
    EXPECT_NE(own.ropes.front().scaling, model::RopeScaling::kNone) << model.name;
    EXPECT_EQ(plain.ropes.front().scaling, model::RopeScaling::kNone) << model.name;
    EXPECT_EQ(plain.ropes.front().base, own.ropes.front().base) << model.name;
    EXPECT_EQ(rotation_of(config_of(path, model.scaling)), rotation_of(own)) << model.name;
  }
}

TEST(RopeScaling, GivesAModelThatHasNoneWhatOthersSayThemselves) {
  const hf::TestFolder folder("hf_qwen3");
  auto json = nlohmann::ordered_json::parse(hf::read_file(folder.file("config.json")));
  const auto base = json["rope_parameters"]["rope_theta"];
  json.erase("rope_parameters");
  json["rope_theta"] = base;
  folder.write("config.json", json.dump());
  EXPECT_EQ(config_of(folder.path()).ropes.front().scaling, model::RopeScaling::kNone);
  EXPECT_EQ(rotation_of(config_of(folder.path(), kScaled[2].scaling)),
            rotation_of(config_of(model_path("hf_qwen3"))));

  auto file = open_model_file(model_path("tiny_yarn.gguf"), {.fields = {}, .rope_scaling = kPlain});
  ASSERT_TRUE(file.ok());
  const auto again = hf::override_file({.fields = {}, .rope_scaling = kScaled[1].scaling},
                                       std::move(file).value());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(rotation_of(model::read_config(again.value()).value()),
            rotation_of(config_of(model_path("tiny_yarn.gguf"))));
}

TEST(RopeScaling, TheContextGrowsByTheFactor) {
  for (const char* const name : {"tiny_mha.gguf", "hf_qwen3"}) {
    const std::string path = model_path(name);
    EXPECT_EQ(config_of(path, R"({"rope_type": "yarn", "factor": 2.5,
                                  "original_max_position_embeddings": 1000})")
                  .context,
              2500u);
    const std::uint32_t trained = config_of(path).context;
    EXPECT_EQ(config_of(path, R"({"rope_type": "linear", "factor": 2})").context, 2 * trained);
    EXPECT_EQ(config_of(path, kPlain).context, trained);
  }
}

TEST(RopeScaling, RowsHaveAnAddressOfTheirOwn) {
  const std::string llama = model_path("tiny_mha.gguf");
  EXPECT_EQ(model::describe_rows(config_of(llama)), "") << "as version 0.1 read it";
  EXPECT_NE(model::describe_rows(config_of(llama, kPlain)), "");
  for (const ScaledModel& model : kScaled) {
    const std::string path = model_path(model.name);
    EXPECT_NE(model::describe_rows(config_of(path)), model::describe_rows(config_of(path, kPlain)))
        << model.name;
  }
}

// The two hold frequencies as a tensor, which the description of a rotation does not show.
TEST(RopeScaling, RowsOfTwoScalingsOfOneKindHaveTwoAddresses) {
  const std::string path = model_path("hf_qwen3");
  const auto llama3 = [](int low) {
    return R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": )" + std::to_string(low) +
           R"(, "high_freq_factor": 4, "original_max_position_embeddings": 32})";
  };
  EXPECT_NE(model::describe_rows(config_of(path, llama3(1))),
            model::describe_rows(config_of(path, llama3(2))));
}

TEST(RopeScaling, WithoutAnOriginalContextItIsTheTrainedOne) {
  const char* const scaling = R"({"rope_type": "yarn", "factor": 4.0})";
  for (const char* const name : {"tiny_mha.gguf", "hf_llama_bias"}) {
    const std::string path = model_path(name);
    EXPECT_EQ(config_of(path, scaling).ropes.front().original_context, config_of(path).context);
    EXPECT_EQ(config_of(path, scaling).context, 4 * config_of(path).context);
  }
}

TEST(RopeScaling, TensorsOfTheFilesOwnScalingAreLeftOut) {
  for (const char* const name : {"tiny_llama3.gguf", "arch_phi3_longrope.gguf"}) {
    const auto file = open_model_file(model_path(name), {.fields = {}, .rope_scaling = kPlain});
    ASSERT_TRUE(file.ok()) << file.error().message;
    const model::Config config = model::read_config(file.value()).value();
    const auto weights = model::load_weights(file.value(), config, kernels::ref_set());
    ASSERT_TRUE(weights.ok()) << weights.error().message;
    EXPECT_TRUE(weights.value().rope_frequencies.empty()) << name;
  }
}

TEST(RopeScaling, TheMagnitudeOfDeepSeekStaysInItsScores) {
  const std::string path = model_path("arch_deepseek3.gguf");
  const model::Config own = config_of(path);
  const model::Config same = config_of(
      path, R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32,
                "mscale": 1.0, "mscale_all_dim": 1.0})");
  EXPECT_EQ(rotation_of(same), rotation_of(own));
  EXPECT_FLOAT_EQ(*same.attention_scale, *own.attention_scale);
}

TEST(HfOverrides, ChangeFieldsOfConfigJson) {
  const auto file = open_model_file(
      model_path("hf_qwen3"),
      {.fields = R"({"rms_norm_eps": 0.25, "rope_parameters": {"rope_theta": 77.0}})",
       .rope_scaling = {}});
  ASSERT_TRUE(file.ok()) << file.error().message;
  const model::Config config = model::read_config(file.value()).value();
  EXPECT_EQ(config.norm_epsilon, 0.25f);
  EXPECT_EQ(config.ropes.front().base, 77.0);
  EXPECT_EQ(config.ropes.front().scaling, model::RopeScaling::kYarn);
}

struct BadOverride {
  const char* model;
  ConfigOverrides overrides;
  std::vector<const char*> says;
};

TEST(Overrides, WhatCannotBeDoneIsRefusedByItsField) {
  const std::vector<BadOverride> table = {
      {"tiny_mha.gguf", {R"({"a": 1})", ""}, {"`hf_overrides`", "GGUF", "`rope_scaling`"}},
      {"hf_qwen3", {"{", ""}, {"`hf_overrides`: "}},
      {"hf_qwen3", {"7", ""}, {"`hf_overrides`: expected a JSON object"}},
      {"hf_qwen3", {R"({"hidden_act": "relu"})", ""}, {"hidden_act is \"relu\""}},
      {"hf_qwen3", {"", "yarn"}, {"`rope_scaling`: "}},
      {"tiny_mha.gguf", {"", "[]"}, {"`rope_scaling`: expected a JSON object"}},
      {"tiny_mha.gguf", {"", R"({"rope_type": "yarn"})"}, {"`rope_scaling`: factor is missing"}},
      {"tiny_mha.gguf", {"", R"({"rope_type": "ntk", "factor": 2})"}, {"rope_type is \"ntk\""}},
      {"tiny_mha.gguf",
       {"", R"({"rope_type": "linear", "factor": 2, "mscale": 1})"},
       {"mscale is 1", "no key"}},
      {"tiny_mha.gguf", {"", R"({"rope_type": "linear", "factor": 0})"}, {"factor is 0"}},
      {"tiny_mha.gguf", {"", R"({"rope_type": "linear", "factor": 1e300})"}, {"factor is 1e+300"}},
      {"hf_qwen3", {"", R"({"rope_type": "linear", "factor": -1})"}, {"factor is -1"}},
      {"hf_gemma3", {"", kPlain}, {"rotate in several ways", "`hf_overrides`"}},
      {"hf_qwen3", {R"({"rope_theta": 7})", ""}, {"rope_theta is 7", "another rope_theta"}},
      {"hf_gemma3_images", {R"({"rms_norm_eps": 1})", ""}, {"rms_norm_eps", "text_config"}},
      {"hf_qwen3", {R"({"text_config": []})", kPlain}, {"text_config"}},
  };
  for (const BadOverride& bad : table) {
    const auto file = open_model_file(model_path(bad.model), bad.overrides);
    ASSERT_FALSE(file.ok()) << bad.overrides.fields << bad.overrides.rope_scaling;
    for (const char* const part : bad.says) EXPECT_THAT(file.error().message, HasSubstr(part));
  }
}

}  // namespace
}  // namespace pagoda::app
