#include "gguf/quantised_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "gguf/gguf_writer.h"
#include "gguf/quantise.h"
#include "gguf/same_model.h"

namespace pagoda::gguf {
namespace {

using testing::HasSubstr;

constexpr TensorType kF32 = TensorType::kF32;
constexpr TensorType kF16 = TensorType::kF16;
constexpr TensorType kBF16 = TensorType::kBF16;
constexpr TensorType kQ8_0 = TensorType::kQ8_0;
constexpr TensorType kQ4_0 = TensorType::kQ4_0;
constexpr TensorType kQ4_K = TensorType::kQ4_K;
constexpr TensorType kMXFP4 = TensorType::kMXFP4;

struct TensorRule {
  const char* name;
  std::vector<std::int64_t> extents;
  TensorType type;
  std::array<TensorType, 3> becomes;  // by Q8_0, Q4_0, Q4_K
};

const std::vector<TensorRule>& rules() {
  static const std::vector<TensorRule> kRules = {
      {"token_embd.weight", {256, 4}, kBF16, {kQ8_0, kQ4_0, kQ4_K}},
      {"output.weight", {256, 4}, kBF16, {kQ8_0, kQ8_0, kQ8_0}},
      {"blk.0.attn_q.weight", {512, 8}, kF32, {kQ8_0, kQ4_0, kQ4_K}},
      {"blk.0.attn_k.weight", {256, 8}, kF16, {kQ8_0, kQ4_0, kQ4_K}},
      {"blk.0.attn_v.weight", {288, 8}, kBF16, {kQ8_0, kQ4_0, kQ8_0}},
      {"blk.0.attn_output.weight", {40, 8}, kBF16, {kBF16, kBF16, kBF16}},
      {"blk.0.attn_k_b.weight", {256, 4, 2}, kBF16, {kQ8_0, kQ4_0, kQ4_K}},
      {"blk.0.ffn_up.weight", {256, 8}, kQ4_0, {kQ4_0, kQ4_0, kQ4_0}},
      {"blk.0.ffn_down_exps.weight", {256, 4, 3}, kF32, {kQ8_0, kQ4_0, kQ4_K}},
      {"blk.0.ffn_up_exps.weight", {256, 4, 3}, kMXFP4, {kMXFP4, kMXFP4, kMXFP4}},
      {"blk.0.ffn_up_exps.bias", {256, 3}, kF32, {kF32, kF32, kF32}},
      {"blk.0.ffn_gate_inp.weight", {256, 8}, kF32, {kF32, kF32, kF32}},
      {"blk.0.ffn_gate_inp_shexp.weight", {256, 1}, kBF16, {kBF16, kBF16, kBF16}},
      {"blk.0.attn_norm.weight", {256}, kF32, {kF32, kF32, kF32}},
      {"blk.0.attn_q_norm.weight", {256, 2}, kF32, {kF32, kF32, kF32}},
      {"blk.0.attn_q.bias", {256}, kF32, {kF32, kF32, kF32}},
      {"blk.0.attn_sinks.weight", {32, 2}, kF32, {kF32, kF32, kF32}},
      {"rope_freqs.weight", {32, 2}, kF32, {kF32, kF32, kF32}},
  };
  return kRules;
}

std::int64_t elements_of(const TensorRule& rule) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : rule.extents) elements *= extent;
  return elements;
}

// A model of the rules' tensors, with values that are finite in every type.
GgufWriter model_of_rules(const std::string& without = {}) {
  GgufWriter model;
  model.add("general.architecture", "llama");
  model.add("general.file_type", 32U);
  for (const TensorRule& rule : rules()) {
    if (rule.name == without) continue;
    const TensorTypeInfo& info = tensor_type_info(rule.type);
    Bytes data(static_cast<std::size_t>(elements_of(rule)) / info.block_elements *
               info.block_bytes);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 % 60);
    model.add_tensor(rule.name, rule.type, rule.extents, data);
  }
  return model;
}

class QuantisedFile : public testing::Test {
 protected:
  QuantisedFile() : path_(testing::TempDir() + "/pagoda_quantised_" + std::to_string(::getpid())) {}
  ~QuantisedFile() override { std::filesystem::remove(path_); }

  // Writes the model quantised, and returns it.
  Result<File> quantise(const File& file, TensorType type, std::size_t threads = 2) {
    ASSIGN_OR_RETURN(const QuantisationPlan plan, plan_quantisation(file, type));
    ASSIGN_OR_RETURN(FileWriter writer, FileWriter::create(path_));
    ThreadPool pool(threads);
    std::uint64_t last = 0;
    RETURN_IF_ERROR(write_quantised(
        plan, pool,
        [&](std::uint64_t done, std::uint64_t all) {
          EXPECT_GT(done, last);
          EXPECT_LE(done, all);
          last = done;
        },
        writer));
    ASSIGN_OR_RETURN(digest_, writer.commit());
    EXPECT_EQ(std::filesystem::file_size(path_), plan.bytes);
    return File::open(path_);
  }

  std::string path_;
  std::string digest_;
};

TEST_F(QuantisedFile, HasTheMatricesInTheTypesOfTheRules) {
  const Bytes bytes = model_of_rules().bytes();
  const auto model = File::parse(bytes, "model");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const std::array<TensorType, 3> types = {kQ8_0, kQ4_0, kQ4_K};
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto made = quantise(model.value(), types[i]);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_EQ(made.value().tensors().size(), rules().size());
    for (std::size_t t = 0; t < rules().size(); ++t) {
      const Tensor& source = model.value().tensors()[t];
      const Tensor& tensor = made.value().tensors()[t];
      EXPECT_TRUE(is_same_shape(tensor, source)) << rules()[t].name;
      EXPECT_EQ(tensor_type_info(tensor.type).name, tensor_type_info(rules()[t].becomes[i]).name)
          << rules()[t].name;
      EXPECT_TRUE(tensor.type != source.type || is_same_tensor(tensor, source));
    }
    EXPECT_EQ(made.value().metadata().text("general.architecture").value(), "llama");
    EXPECT_FALSE(made.value().metadata().contains("general.file_type"));
  }
}

// What is no float, and what is no matrix, stays.
TEST_F(QuantisedFile, HasEveryMatrixOfFloatsInTheTypeOfFloatsThatWasAskedFor) {
  const Bytes bytes = model_of_rules().bytes();
  const auto model = File::parse(bytes, "model");
  for (const TensorType type : {kF32, kF16, kBF16}) {
    const auto made = quantise(model.value(), type);
    ASSERT_TRUE(made.ok()) << made.error().message;
    for (std::size_t t = 0; t < rules().size(); ++t) {
      const Tensor& source = model.value().tensors()[t];
      const bool stays = rules()[t].becomes[0] == rules()[t].type &&
                         std::string_view(rules()[t].name) != "blk.0.attn_output.weight";
      EXPECT_EQ(made.value().tensors()[t].type, stays ? source.type : type) << rules()[t].name;
      EXPECT_TRUE(is_same_shape(made.value().tensors()[t], source)) << rules()[t].name;
    }
  }
}

TEST_F(QuantisedFile, RoundsFloatsToTheNearestAndTiesToEven) {
  GgufWriter model;
  const std::vector<float> values = {1.0f,         1.0f + 0x1p-8f, 1.0f + 0x3p-8f, -0.1f,
                                     0x1.234p-20f, 65504.0f,       0x1p-24f,       0.0f};
  model.add_tensor<float>("output.weight", kF32, {4, 2}, values);
  const Bytes bytes = model.bytes();
  const auto read = [&](TensorType type) {
    const auto made = quantise(File::parse(bytes, "model.gguf").value(), type);
    std::vector<std::uint16_t> bits(8);
    std::memcpy(bits.data(), made.value().find_tensor("output.weight")->bytes.data(), 16);
    return bits;
  };
  // By Python's struct; bfloat16 is the upper half of a float, rounded by hand.
  EXPECT_EQ(read(kF16), (std::vector<std::uint16_t>{0x3c00, 0x3c04, 0x3c0c, 0xae66, 0x0012, 0x7bff,
                                                    0x0001, 0x0000}));
  EXPECT_EQ(read(kBF16), (std::vector<std::uint16_t>{0x3f80, 0x3f80, 0x3f82, 0xbdcd, 0x3592, 0x4780,
                                                     0x3380, 0x0000}));
}

TEST_F(QuantisedFile, OfTiedWeightsTheEmbeddingGivesTheLogits) {
  const Bytes bytes = model_of_rules("output.weight").bytes();
  const auto model = File::parse(bytes, "model");
  const auto made = quantise(model.value(), kQ4_K);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value().find_tensor("token_embd.weight")->type, kQ8_0);
}

TEST_F(QuantisedFile, HoldsEveryRowAsItIsQuantisedAlone) {
  const Bytes bytes = model_of_rules().bytes();
  const auto model = File::parse(bytes, "model");
  const auto made = quantise(model.value(), kQ4_K);
  ASSERT_TRUE(made.ok());
  const Tensor& source = *model.value().find_tensor("blk.0.attn_q.weight");
  const Tensor& tensor = *made.value().find_tensor("blk.0.attn_q.weight");
  for (std::size_t row = 0; row < 8; ++row) {
    std::vector<float> values(512);
    std::memcpy(values.data(), source.bytes.data() + row * 2048, 2048);
    Bytes blocks(288);
    ASSERT_TRUE(quantise_row(kQ4_K, values, blocks.data()));
    EXPECT_TRUE(std::equal(blocks.begin(), blocks.end(), tensor.bytes.data() + row * 288)) << row;
  }
}

TEST_F(QuantisedFile, DoesNotDependOnThreads) {
  const Bytes bytes = model_of_rules().bytes();
  const auto model = File::parse(bytes, "model");
  ASSERT_TRUE(quantise(model.value(), kQ4_K, 1).ok());
  const std::string alone = digest_;
  for (const std::size_t threads : {2U, 3U, 7U}) {
    ASSERT_TRUE(quantise(model.value(), kQ4_K, threads).ok());
    EXPECT_EQ(digest_, alone) << threads;
  }
}

TEST_F(QuantisedFile, OfAQuantisedModelIsRefused) {
  GgufWriter model;
  model.add_tensor("blk.0.ffn_up.weight", kQ4_0, {32, 2}, Bytes(36));
  model.add_tensor("output.weight", kQ8_0, {32, 2}, Bytes(68));
  model.add_tensor<float>("blk.0.ffn_gate_inp.weight", kF32, {32, 2}, std::vector<float>(64));
  const Bytes bytes = model.bytes();
  const auto made = quantise(File::parse(bytes, "model.gguf").value(), kQ4_K);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "model.gguf: is quantised already (Q4_0, Q8_0)");
}

TEST_F(QuantisedFile, OfAModelWithShortRowsIsRefused) {
  GgufWriter model;
  model.add_tensor<float>("output.weight", kF32, {24, 2}, std::vector<float>(48));
  const Bytes bytes = model.bytes();
  const auto made = quantise(File::parse(bytes, "model.gguf").value(), kQ8_0);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("multiple of 32"));
}

TEST_F(QuantisedFile, AValueThatATypeOfFloatsDoesNotHoldIsRefused) {
  struct Beyond {
    TensorType type;
    float value;
  };
  for (const Beyond& beyond : {Beyond{kF16, 65520.0f}, Beyond{kBF16, 3.4e38f},
                               Beyond{kF16, std::numeric_limits<float>::quiet_NaN()}}) {
    GgufWriter model;
    model.add_tensor<float>("output.weight", kF32, {2, 2}, {1.0f, 2.0f, beyond.value, 3.0f});
    const Bytes bytes = model.bytes();
    const auto made = quantise(File::parse(bytes, "model.gguf").value(), beyond.type);
    ASSERT_FALSE(made.ok());
    EXPECT_THAT(made.error().message,
                HasSubstr(std::string("tensor 'output.weight' cannot be rounded to ") +
                          std::string(tensor_type_info(beyond.type).name)));
  }
}

TEST_F(QuantisedFile, ATensorThatIsNotFiniteIsNamedAndNothingIsLeft) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), 1e30f}) {
    GgufWriter model;
    std::vector<float> values(64, 1.0f);
    model.add_tensor<float>("output.weight", kF32, {32, 2}, values);
    values[40] = bad;
    model.add_tensor<float>("blk.0.ffn_up.weight", kF32, {32, 2}, values);
    const Bytes bytes = model.bytes();
    const auto made = quantise(File::parse(bytes, "model.gguf").value(), kQ8_0);
    ASSERT_FALSE(made.ok());
    EXPECT_THAT(made.error().message,
                HasSubstr("model.gguf: tensor 'blk.0.ffn_up.weight' cannot be quantised"));
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_FALSE(std::filesystem::exists(path_ + FileWriter::kTemporaryEnd));
  }
}

}  // namespace
}  // namespace pagoda::gguf
