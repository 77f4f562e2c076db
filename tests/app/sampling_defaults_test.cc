#include "app/sampling_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "default_model.h"
#include "gguf/file.h"

namespace pagoda::app {
namespace {

using testing::HasSubstr;

gguf::MetadataValue f32(float value) { return {gguf::ValueType::kF32, static_cast<double>(value)}; }
gguf::MetadataValue i32(std::int64_t value) { return {gguf::ValueType::kI32, value}; }
gguf::MetadataValue text(std::string_view value) { return {gguf::ValueType::kString, value}; }

TEST(SamplingDefaults, AreReadFromTheFileByLlamaCppsKeys) {
  gguf::Metadata metadata("test");
  metadata.insert("general.sampling.temp", f32(0.6f));
  metadata.insert("general.sampling.top_k", i32(20));
  metadata.insert("general.sampling.top_p", f32(0.95f));
  metadata.insert("general.sampling.min_p", f32(0.01f));
  metadata.insert("general.sampling.penalty_repeat", f32(1.05f));
  const SamplingDefaults read = model_sampling(metadata);
  EXPECT_EQ(sampling_text(read.fields),
            "temperature 0.6, top_k 20, top_p 0.95, min_p 0.01, repetition_penalty 1.05");
  EXPECT_EQ(read.source, "the model's file");
  EXPECT_TRUE(read.warnings.empty());
  const engine::SamplingParams params = read.params({});
  EXPECT_EQ(params.temperature, 0.6f);
  EXPECT_EQ(params.top_k, 20u);
  EXPECT_EQ(params.top_p, 0.95f);
  EXPECT_EQ(params.min_p, 0.01f);
  EXPECT_EQ(params.repetition_penalty, 1.05f);
}

TEST(SamplingDefaults, StandAboveOpenAisWhereThereAreAny) {
  gguf::Metadata metadata("test");
  EXPECT_EQ(model_sampling(metadata).params({.temperature = 0.3f}).temperature, 0.3f);
  metadata.insert("general.sampling.top_k", i32(-1));
  EXPECT_EQ(model_sampling(metadata).params({.temperature = 0.3f}).temperature, 1.0f);
  EXPECT_EQ(model_sampling(metadata).fields.top_k, 0u) << "-1 is all tokens";
}

TEST(SamplingDefaults, ValuesOutOfRangeAreLeftOutWithAWarning) {
  gguf::Metadata metadata("test");
  metadata.insert("general.sampling.temp", f32(-1));
  metadata.insert("general.sampling.top_p", f32(0));
  metadata.insert("general.sampling.min_p", f32(std::nanf("")));
  metadata.insert("general.sampling.top_k", text("20"));
  metadata.insert("general.sampling.penalty_repeat", f32(1.1f));
  metadata.insert("general.sampling.penalty_last_n", i32(0));
  metadata.insert("general.sampling.mirostat", i32(2));
  const SamplingDefaults read = model_sampling(metadata);
  EXPECT_FALSE(read.fields.any()) << sampling_text(read.fields);
  EXPECT_EQ(read.warnings.size(), 5u) << testing::PrintToString(read.warnings);
}

// As in llama.cpp: over the last so many tokens, over none (0) or over all (-1).
TEST(SamplingDefaults, APenaltyIsOverAllTokensOrSaysThatItIsNot) {
  const struct {
    std::int64_t last_n;
    float penalty;
    bool applies;
    std::size_t warnings;
  } cases[] = {{0, 1.1f, false, 0}, {-1, 1.1f, true, 0}, {64, 1.1f, true, 1}, {64, 1.0f, true, 0}};
  for (const auto& tested : cases) {
    gguf::Metadata metadata("test");
    metadata.insert("general.sampling.penalty_repeat", f32(tested.penalty));
    metadata.insert("general.sampling.penalty_last_n", i32(tested.last_n));
    const SamplingDefaults read = model_sampling(metadata);
    EXPECT_EQ(read.fields.repetition_penalty.has_value(), tested.applies) << tested.last_n;
    EXPECT_EQ(read.warnings.size(), tested.warnings) << tested.last_n;
  }
}

TEST(SamplingDefaults, TheDefaultModelIsKnownByItsNameAndNotByItsPath) {
  gguf::Metadata metadata("somewhere/else.gguf");
  metadata.insert("general.name", text("Smollm2 135M 8k Lc100K Mix1 Ep2"));
  EXPECT_EQ(sampling_text(model_sampling(metadata).fields), "temperature 0.2, top_p 0.9");
  EXPECT_FALSE(file_sampling(metadata).fields.any());
  metadata.insert("general.sampling.temp", f32(0.5f));
  EXPECT_EQ(sampling_text(model_sampling(metadata).fields), "temperature 0.5")
      << "what the file says comes first";
  gguf::Metadata other("SmolLM2-135M-Instruct.Q4_1.gguf");
  other.insert("general.name", text("Stories"));
  EXPECT_FALSE(model_sampling(other).fields.any());
}

TEST(SamplingDefaults, TheDefaultModelOfThisMachineIsTheKnownOne) {
  REQUIRE_DEFAULT_MODEL();
  const Result<gguf::File> file = gguf::File::open(default_model_path());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(sampling_text(model_sampling(file.value().metadata()).fields),
            "temperature 0.2, top_p 0.9");
}

TEST(SamplingDefaults, AGenerationConfigTurnsThemOffOrStandsAboveThem) {
  SamplingDefaults of_model;
  of_model.fields.temperature = 0.6;
  of_model.fields.top_k = 20;
  of_model.source = "the model's file";
  EXPECT_EQ(sampling_text(with_generation_config(of_model, {}).value().fields),
            "temperature 0.6, top_k 20");
  EXPECT_FALSE(with_generation_config(of_model, {.from_model = false, .override_json = ""})
                   .value()
                   .fields.any());
  const std::string json = R"({"temperature": 0.5, "top_p": 0.8})";
  EXPECT_EQ(
      sampling_text(with_generation_config(of_model, {.from_model = true, .override_json = json})
                        .value()
                        .fields),
      "temperature 0.5, top_k 20, top_p 0.8");
  EXPECT_EQ(
      sampling_text(with_generation_config(of_model, {.from_model = false, .override_json = json})
                        .value()
                        .fields),
      "temperature 0.5, top_p 0.8");
  for (const char* const wrong : {" ", "[]", "{", R"({"temperature": -1})", R"({"top_p": 0})",
                                  R"({"max_new_tokens": 5})", R"({"temperature": "a"})"}) {
    const auto refused =
        with_generation_config(of_model, {.from_model = true, .override_json = wrong});
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_THAT(refused.error().message, HasSubstr("override_generation_config"));
  }
}

}  // namespace
}  // namespace pagoda::app
