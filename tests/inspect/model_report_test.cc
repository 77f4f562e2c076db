#include "inspect/model_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "gguf/gguf_writer.h"

namespace pagoda::inspect {
namespace {

using gguf::Bytes;
using gguf::GgufWriter;
using gguf::TensorType;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class InspectTest : public ::testing::Test {
 protected:
  void add_shape(std::uint32_t layers, std::uint32_t context) {
    writer_.add("general.architecture", "llama");
    writer_.add("llama.block_count", layers);
    writer_.add("llama.context_length", context);
    writer_.add<std::uint32_t>("llama.embedding_length", 64);
    writer_.add<std::uint32_t>("llama.attention.head_count", 8);
  }

  const gguf::File& parsed() {
    bytes_ = writer_.bytes();
    Result<gguf::File> file = gguf::File::parse(bytes_, "memory");
    if (!file.ok()) throw std::runtime_error(file.error().message);
    file_.emplace(std::move(file).value());
    return *file_;
  }

  nlohmann::json json() {
    const gguf::File& file = parsed();
    return nlohmann::json::parse(inspection_json(file, inspect_model(file)));
  }
  std::string text() {
    const gguf::File& file = parsed();
    return inspection_text(file, inspect_model(file));
  }

  GgufWriter writer_;

 private:
  Bytes bytes_;
  std::optional<gguf::File> file_;
};

TEST_F(InspectTest, ATokensBytesAreToldForEveryKvDtype) {
  add_shape(1, 10);
  writer_.add<std::uint32_t>("llama.attention.key_length", 64);
  writer_.add<std::uint32_t>("llama.attention.value_length", 64);
  // 8 heads; a scale of 2 bytes for every row, in int4 for every 32 values.
  const nlohmann::json expected = {{"fp16", 8 * 256},       {"bf16", 8 * 256},
                                   {"fp8", 8 * 2 * 66},     {"int8", 8 * 2 * 66},
                                   {"k8v4", 8 * (66 + 36)}, {"int4", 8 * 2 * 36}};
  EXPECT_EQ(json()["kv_cache"]["bytes_per_token_by_dtype"], expected);
}

TEST_F(InspectTest, TensorsAreTotalledByTypeMostBytesFirst) {
  writer_.add_tensor<float>("norm", TensorType::kF32, {4}, {1, 2, 3, 4});
  writer_.add_tensor("a", TensorType::kQ4_0, {32, 2}, Bytes(36));
  writer_.add_tensor("b", TensorType::kQ4_0, {32}, Bytes(18));
  const Inspection inspection = inspect_model(parsed());
  EXPECT_THAT(inspection.types,
              ElementsAre(TensorTotal{"Q4_0", 2, 96, 54}, TensorTotal{"F32", 1, 4, 16}));
  EXPECT_EQ(inspection.all, (TensorTotal{"total", 3, 100, 70}));
}

TEST_F(InspectTest, KvBytesArePerLayerHeadsTimesKeyAndValueInTwoBytes) {
  add_shape(3, 1000);
  writer_.add_array<std::uint32_t>("llama.attention.head_count_kv", {4, 2, 1});
  writer_.add<std::uint32_t>("llama.attention.key_length", 16);
  writer_.add<std::uint32_t>("llama.attention.value_length", 8);
  const Inspection inspection = inspect_model(parsed());
  ASSERT_TRUE(inspection.kv.has_value()) << inspection.kv_reason;
  EXPECT_EQ(inspection.kv->bytes_per_token, (4 + 2 + 1) * (16 + 8) * 2);
  EXPECT_EQ(inspection.kv->bytes_per_full_context, (4 + 2 + 1) * (16 + 8) * 2 * 1000);
  EXPECT_EQ(inspection.kv->context_length, 1000);
}

TEST_F(InspectTest, WithoutKvHeadsOrLengthsTheCacheIsThatOfTheQueryHeads) {
  add_shape(2, 10);
  const Inspection inspection = inspect_model(parsed());
  ASSERT_TRUE(inspection.kv.has_value()) << inspection.kv_reason;
  EXPECT_EQ(inspection.kv->bytes_per_token, 2 * 8 * (8 + 8) * 2);
}

TEST_F(InspectTest, WindowedLayersKeepTheirWindowOnlyAndAreShown) {
  add_shape(4, 1000);
  writer_.add<std::uint32_t>("llama.attention.sliding_window", 100);
  writer_.add<std::uint32_t>("llama.attention.sliding_window_pattern", 4);
  const gguf::File& file = parsed();
  const Inspection inspection = inspect_model(file);
  ASSERT_TRUE(inspection.kv.has_value()) << inspection.kv_reason;
  constexpr std::int64_t kLayer = 8 * (8 + 8) * 2;
  EXPECT_EQ(inspection.kv->bytes_per_token, 4 * kLayer);
  EXPECT_EQ(inspection.kv->bytes_per_full_context, 3 * kLayer * 100 + kLayer * 1000);
  EXPECT_THAT(inspection_text(file, inspection), HasSubstr("3 layers of 8 KV heads x (8 key + 8 "
                                                           "value), window of 100 tokens"));
}

TEST_F(InspectTest, VocabularyOnlyFilesSayWhyTheCacheIsUnknown) {
  writer_.add("general.architecture", "llama");
  writer_.add_array<std::string>("tokenizer.ggml.tokens", std::vector<std::string>(300, "x"));
  const gguf::File& file = parsed();
  const Inspection inspection = inspect_model(file);
  EXPECT_FALSE(inspection.kv.has_value());
  EXPECT_THAT(inspection.types, IsEmpty());
  EXPECT_THAT(inspection_text(file, inspection),
              AllOf(HasSubstr("KV cache: unknown: memory: key 'llama.block_count' is missing"),
                    HasSubstr("vocabulary      300")));
}

TEST_F(InspectTest, ACacheThatPassesAllNumbersIsUnknownByItsFieldsName) {
  add_shape(1 << 16, UINT32_MAX);
  writer_.add<std::uint32_t>("llama.attention.key_length", 1 << 20);
  EXPECT_THAT(text(), HasSubstr("KV cache: unknown: sequence_length: 4294967295 is out of range"));
}

TEST_F(InspectTest, AnEmptyFileIsStillAReport) {
  EXPECT_THAT(text(), HasSubstr("architecture: not stated"));
  EXPECT_TRUE(json()["architecture"].is_null());
}

TEST_F(InspectTest, TextShortensLongArraysAndTextsAndHidesControlBytes) {
  writer_.add_array<std::int32_t>("long", std::vector<std::int32_t>(5000, 7));
  writer_.add_array<std::int32_t>("short", {1, -2, 3});
  writer_.add("template", std::string(500, 'a') + "end");
  writer_.add("danger", "a\x1b[2Jb");
  writer_.add<float>("eps", 1e-5f);
  EXPECT_THAT(text(), AllOf(HasSubstr("long = [7, 7, 7, 7, 7, 7, \u2026 5,000 in all]\n"),
                            HasSubstr("short = [1, -2, 3]\n"), Not(HasSubstr("aend")),
                            HasSubstr("danger = \"a\\x1b[2Jb\"\n"), HasSubstr("eps = 1e-05\n")));
}

TEST_F(InspectTest, JsonHoldsEveryScalarExactlyAndTheHeadOfLongArrays) {
  add_shape(2, 16);
  writer_.add<std::uint64_t>("big", ~std::uint64_t{0});
  writer_.add<float>("eps", 1e-5f);
  writer_.add_array<float>("scores", std::vector<float>(20, 0.5f));
  writer_.add_array<bool>("flags", {true, false});
  writer_.add_tensor<float>("t", TensorType::kF32, {2}, {1, 2});
  const nlohmann::json found = json();
  EXPECT_EQ(found["metadata"]["big"].get<std::uint64_t>(), ~std::uint64_t{0});
  EXPECT_EQ(found["metadata"]["eps"].get<double>(), 1e-5);
  EXPECT_EQ(found["metadata"]["flags"], nlohmann::json({true, false}));
  EXPECT_EQ(found["metadata"]["scores"]["count"], 20);
  EXPECT_EQ(found["metadata"]["scores"]["type"], "f32");
  EXPECT_EQ(found["metadata"]["scores"]["first"].size(), 8u);
  EXPECT_EQ(found["architecture"]["block_count"], 2);
  EXPECT_EQ(found["kv_cache"]["bytes_per_token"], 2 * 8 * 16 * 2);
  EXPECT_EQ(found["tensors"]["by_type"]["F32"]["bytes"], 8);
  EXPECT_EQ(found["tensors"]["parameters"], 2);
}

TEST_F(InspectTest, JsonIsValidWhateverBytesTheFileHolds) {
  writer_.add("bad\xff", "\xc3(");
  EXPECT_EQ(json()["metadata"].size(), 1u);
}

TEST_F(InspectTest, ABrokenShapeIsAReasonAndNotAFailure) {
  add_shape(3, 1000);
  writer_.add_array<std::uint32_t>("llama.attention.head_count_kv", {4, 2});
  const nlohmann::json found = json();
  EXPECT_TRUE(found["kv_cache"].is_null());
  EXPECT_THAT(found["kv_cache_unknown"].get<std::string>(), HasSubstr("2 values for 3 layers"));
}

}  // namespace
}  // namespace pagoda::inspect
