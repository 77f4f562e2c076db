#include "gguf/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "gguf/gguf_writer.h"
#include "test_data.h"

namespace pagoda::gguf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

GgufWriter two_tensors() {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add_tensor<float>("a", TensorType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6});
  writer.add_tensor("b", TensorType::kQ4_0, {64, 1, 3}, Bytes(108, std::byte{7}));
  return writer;
}

float float_at(const Tensor& tensor, std::size_t index) {
  float value = 0;
  std::memcpy(&value, tensor.bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

std::string fresh_path(const std::string& name) {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = ::testing::TempDir() + "gguf_" + test->name();
  std::filesystem::create_directories(folder);
  return folder + "/" + name;
}

TEST(File, TensorsComeBackWithNameShapeTypeAndBytes) {
  const Bytes bytes = two_tensors().bytes();
  const Result<File> parsed = File::parse(bytes, "memory");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const File& file = parsed.value();
  ASSERT_EQ(file.tensors().size(), 2u);
  const Tensor& a = file.tensors()[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.type, TensorType::kF32);
  EXPECT_EQ(a.dimensions, 2u);
  EXPECT_EQ(a.extents, (std::array<std::uint64_t, 4>{3, 2, 1, 1}));
  EXPECT_EQ(a.bytes.size(), 24u);
  EXPECT_EQ(float_at(a, 5), 6.0f);
  const Tensor& b = file.tensors()[1];
  EXPECT_EQ(b.elements(), 192u);
  EXPECT_EQ(b.rows(), 3u);
  EXPECT_EQ(b.bytes.size(), 108u);
  EXPECT_EQ(b.bytes[107], std::byte{7});
  EXPECT_EQ(file.path(), "memory");
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(file.bytes(), bytes.size());
}

TEST(File, FindTensorKnowsNamesExactly) {
  const Bytes bytes = two_tensors().bytes();
  const Result<File> file = File::parse(bytes, "memory");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value().find_tensor("b"), &file.value().tensors()[1]);
  EXPECT_EQ(file.value().find_tensor("B"), nullptr);
  EXPECT_EQ(file.value().find_tensor(""), nullptr);
}

TEST(File, Version2ReadsAsVersion3) {
  GgufWriter writer = two_tensors();
  writer.version = 2;
  const Bytes bytes = writer.bytes();
  const Result<File> file = File::parse(bytes, "memory");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().version(), 2u);
  EXPECT_EQ(float_at(file.value().tensors()[0], 2), 3.0f);
}

TEST(File, AlignmentOfTheFileIsHonoured) {
  for (const std::uint32_t alignment : {8u, 64u, 4096u}) {
    GgufWriter writer;
    writer.set_alignment(alignment);
    writer.add_tensor<float>("a", TensorType::kF32, {1}, {1.5f});
    writer.add_tensor<float>("b", TensorType::kF32, {1}, {2.5f});
    const Bytes bytes = writer.bytes();
    const Result<File> file = File::parse(bytes, "memory");
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(float_at(file.value().tensors()[1], 0), 2.5f);
    EXPECT_EQ(file.value().tensors()[1].bytes.data() - file.value().tensors()[0].bytes.data(),
              static_cast<std::ptrdiff_t>(alignment));
  }
}

TEST(File, TensorsMayStandInAnyOrderWithGapsBetweenThem) {
  GgufWriter writer;
  const Bytes one(4, std::byte{1});
  writer.add_tensor({"late", {1}, 0, Bytes(128, std::byte{3}), 96});
  writer.add_tensor({"early", {1}, 0, one, 32});
  const Bytes bytes = writer.bytes();
  const Result<File> file = File::parse(bytes, "memory");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().tensors()[0].name, "late");
  EXPECT_EQ(file.value().tensors()[0].bytes.data() - file.value().tensors()[1].bytes.data(), 64);
}

TEST(File, TheLastTensorNeedsNoPaddingBehindIt) {
  GgufWriter writer;
  writer.add_tensor<float>("a", TensorType::kF32, {1}, {4.0f});
  const Bytes padded = writer.bytes();
  Bytes bytes(padded.begin(), padded.end() - 28);
  const Result<File> whole = File::parse(bytes, "memory");
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ(float_at(whole.value().tensors()[0], 0), 4.0f);
  bytes.pop_back();
  EXPECT_FALSE(File::parse(bytes, "memory").ok());
}

TEST(File, VocabularyOnlyFilesHaveNoTensors) {
  GgufWriter writer;
  writer.add_array<std::string>("tokenizer.ggml.tokens", {"a", "b"});
  const Bytes bytes = writer.bytes();
  const Result<File> file = File::parse(bytes, "memory");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file.value().tensors().empty());
}

TEST(File, CodebookTypesAreSizedThoughTheyCannotBeRead) {
  GgufWriter writer;
  writer.add_tensor("x", TensorType::kIQ2_XXS, {512}, Bytes(132, std::byte{0}));
  const Bytes bytes = writer.bytes();
  const Result<File> file = File::parse(bytes, "memory");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().tensors()[0].bytes.size(), 132u);
  EXPECT_FALSE(tensor_type_info(file.value().tensors()[0].type).readable);
}

TEST(File, OpenReadsTheSameAsParseAndSurvivesAMove) {
  const std::string path = fresh_path("model.gguf");
  two_tensors().save(path);
  Result<File> opened = File::open(path);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  File moved = std::move(opened).value();
  const File file = std::move(moved);
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(file.bytes(), std::filesystem::file_size(path));
  ASSERT_NE(file.find_tensor("a"), nullptr);
  EXPECT_EQ(float_at(*file.find_tensor("a"), 3), 4.0f);
  EXPECT_EQ(file.metadata().text("general.architecture").value(), "llama");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.find_tensor("b")->bytes.data()) % 32, 0u);
}

TEST(File, AModelWrittenByGgufPyIsRead) {
  const Result<File> opened = File::open(test_data() + "/models/stories260K.gguf");
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const File& file = opened.value();
  const Metadata& metadata = file.metadata();
  EXPECT_EQ(file.tensors().size(), 47u);
  EXPECT_EQ(metadata.unsigned_value("llama.block_count").value(), 5u);
  EXPECT_EQ(metadata.number_or("llama.attention.layer_norm_rms_epsilon", 0).value(), 1e-5f);
  const auto tokens = metadata.texts("tokenizer.ggml.tokens").value();
  ASSERT_EQ(tokens.size(), 512u);
  EXPECT_EQ(tokens[1], "<s>");
  EXPECT_EQ(tokens[403], "\u2581Once");
  EXPECT_EQ(metadata.integers("tokenizer.ggml.token_type").value()[3], 6);
  EXPECT_EQ(metadata.floats("tokenizer.ggml.scores").value()[403], -144.0f);
  const Tensor* const gate = file.find_tensor("blk.4.ffn_gate.weight");
  ASSERT_NE(gate, nullptr);
  EXPECT_EQ(gate->extents, (std::array<std::uint64_t, 4>{64, 172, 1, 1}));
  const Tensor* const embedding = file.find_tensor("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(float_at(*embedding, 0), -0.294748783f);  // the first weight of stories260K.bin
}

TEST(File, AMissingFileIsNotFound) {
  const Result<File> file = File::open(fresh_path("absent.gguf"));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(file.error().message, AllOf(HasSubstr("absent.gguf"), HasSubstr("No such file")));
}

TEST(File, ADirectoryIsRefused) {
  const Result<File> file = File::open(::testing::TempDir());
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("is a directory, expected a regular file"));
}

TEST(File, AFifoIsRefusedWithoutWaitingForAWriter) {
  const std::string path = fresh_path("pipe.gguf");
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Result<File> file = File::open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
}

TEST(File, AnEmptyFileIsRefused) {
  const std::string path = fresh_path("empty.gguf");
  write_file(path, {});
  const Result<File> file = File::open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("is empty (0 bytes)"));
}

}  // namespace
}  // namespace pagoda::gguf
