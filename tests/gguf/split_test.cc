// Models in several files: name-00001-of-0000N.gguf.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "gguf/file.h"
#include "gguf/gguf_writer.h"

namespace pagoda::gguf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::array<const char*, 5> kNames = {"t0", "t1", "t2", "t3", "t4"};

class SplitTest : public ::testing::Test {
 protected:
  SplitTest() {
    writer_.set_alignment(64);
    writer_.add("general.architecture", "llama");
    for (std::size_t index = 0; index < kNames.size(); ++index) {
      writer_.add_tensor<float>(kNames[index], TensorType::kF32, {2},
                                {static_cast<float>(index), 0.5f});
    }
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::string folder = ::testing::TempDir() + "split_" + test->name();
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    prefix_ = folder + "/model";
  }

  std::string error_of(const std::string& path) {
    const Result<File> file = File::open(path);
    return file.ok() ? "no error" : file.error().message;
  }

  // A part with these split keys and one tensor, saved under `path`.
  void save_part(const std::string& path, std::uint16_t index, std::uint16_t count,
                 std::int32_t tensors, const std::string& name) {
    GgufWriter part;
    part.add("split.no", index);
    part.add("split.count", count);
    part.add("split.tensors.count", tensors);
    part.add_tensor<float>(name, TensorType::kF32, {1}, {1.0f});
    part.save(path);
  }

  GgufWriter writer_;
  std::string prefix_;
};

TEST_F(SplitTest, OpeningAnyPartOpensAllInOrder) {
  const std::vector<std::string> paths = writer_.save_split(prefix_, 3);
  for (const std::string& path : paths) {
    const Result<File> opened = File::open(path);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const File& file = opened.value();
    ASSERT_EQ(file.tensors().size(), 5u);
    for (std::size_t index = 0; index < 5; ++index) {
      const Tensor& tensor = file.tensors()[index];
      EXPECT_EQ(tensor.name, kNames[index]);
      EXPECT_EQ(file.find_tensor(tensor.name), &tensor);
      float value = -1;
      std::memcpy(&value, tensor.bytes.data(), sizeof(value));
      EXPECT_EQ(value, static_cast<float>(index));
    }
    EXPECT_EQ(file.path(), paths[0]);
    EXPECT_EQ(file.metadata().text("general.architecture").value(), "llama");
    std::uint64_t bytes = 0;
    for (const std::string& part : paths) bytes += std::filesystem::file_size(part);
    EXPECT_EQ(file.bytes(), bytes);
  }
}

TEST_F(SplitTest, AMissingPartIsNamed) {
  const std::vector<std::string> paths = writer_.save_split(prefix_, 3);
  std::filesystem::remove(paths[1]);
  EXPECT_THAT(error_of(paths[2]), HasSubstr("model-00002-of-00003.gguf: cannot open"));
}

TEST_F(SplitTest, APartUnderAnotherNameIsRefusedWithTheNameItShouldHave) {
  const std::vector<std::string> paths = writer_.save_split(prefix_, 2);
  std::filesystem::rename(paths[1], prefix_ + ".gguf");
  EXPECT_THAT(error_of(prefix_ + ".gguf"),
              AllOf(HasSubstr("is part 2 of 2"), HasSubstr("'-00002-of-00002.gguf'")));
}

TEST_F(SplitTest, APartOfAnotherSetIsRefused) {
  save_part(prefix_ + "-00001-of-00002.gguf", 0, 2, 2, "a");
  save_part(prefix_ + "-00002-of-00002.gguf", 0, 2, 2, "b");
  EXPECT_THAT(error_of(prefix_ + "-00001-of-00002.gguf"),
              HasSubstr("00002-of-00002.gguf: says it is part 1 of 2, expected part 2 of 2"));
  save_part(prefix_ + "-00002-of-00002.gguf", 1, 3, 2, "b");
  EXPECT_THAT(error_of(prefix_ + "-00001-of-00002.gguf"),
              HasSubstr("says it is part 2 of 3, expected part 2 of 2"));
}

TEST_F(SplitTest, TheTensorCountOfTheSetMustBeTrue) {
  save_part(prefix_ + "-00001-of-00002.gguf", 0, 2, 7, "a");
  save_part(prefix_ + "-00002-of-00002.gguf", 1, 2, 7, "b");
  EXPECT_THAT(error_of(prefix_ + "-00001-of-00002.gguf"),
              HasSubstr("split.tensors.count is 7, but there are 2 tensors"));
}

TEST_F(SplitTest, ATensorInTwoPartsIsRefused) {
  save_part(prefix_ + "-00001-of-00002.gguf", 0, 2, 2, "a");
  save_part(prefix_ + "-00002-of-00002.gguf", 1, 2, 2, "a");
  EXPECT_THAT(error_of(prefix_ + "-00001-of-00002.gguf"),
              AllOf(HasSubstr("00002-of-00002.gguf: tensor 'a'"), HasSubstr("earlier part")));
}

TEST_F(SplitTest, APartNumberBeyondTheCountIsRefused) {
  save_part(prefix_ + "-00006-of-00002.gguf", 5, 2, 1, "a");
  EXPECT_THAT(error_of(prefix_ + "-00006-of-00002.gguf"),
              HasSubstr("split.no is 5, expected less than split.count, which is 2"));
}

TEST_F(SplitTest, AHugePartCountIsRefused) {
  GgufWriter part;
  part.add("split.count", std::uint64_t{1} << 40);
  part.save(prefix_ + ".gguf");
  EXPECT_THAT(error_of(prefix_ + ".gguf"), HasSubstr("the limit is 65535"));
}

TEST_F(SplitTest, ASetOfOneIsAModelUnderAnyName) {
  save_part(prefix_ + ".gguf", 0, 1, 1, "a");
  EXPECT_TRUE(File::open(prefix_ + ".gguf").ok());
}

TEST_F(SplitTest, APartInMemoryIsNotAModelAlone) {
  const std::vector<Bytes> files = writer_.split(2);
  const Result<File> file = File::parse(files[1], "memory");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(file.error().message, HasSubstr("is part 2 of 2, not a model alone"));
}

}  // namespace
}  // namespace pagoda::gguf
