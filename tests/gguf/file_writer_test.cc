#include "gguf/file_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "gguf/gguf_writer.h"
#include "gguf/same_model.h"

namespace pagoda::gguf {
namespace {

using testing::HasSubstr;

class WrittenFile : public testing::Test {
 protected:
  WrittenFile() : folder_(testing::TempDir() + "/pagoda_writer_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~WrittenFile() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  // A copy of a model by file_head() and FileWriter.
  void write_copy(const File& file, const std::string& to) const {
    Result<FileWriter> writer = FileWriter::create(to);
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    const std::string head = file_head(file.metadata(), file.tensors());
    ASSERT_TRUE(writer.value().append(std::as_bytes(std::span(head))).ok());
    for (const Tensor& tensor : file.tensors()) {
      ASSERT_TRUE(writer.value().append(tensor.bytes).ok());
      ASSERT_TRUE(writer.value().pad().ok());
    }
    EXPECT_FALSE(std::filesystem::exists(to));
    ASSERT_TRUE(writer.value().commit().ok());
    EXPECT_EQ(std::filesystem::file_size(to), file_bytes(head, file.tensors()));
  }

 private:
  std::string folder_;
};

GgufWriter model_of_all_types() {
  GgufWriter model;
  model.add("general.architecture", "llama");
  model.add<std::uint8_t>("a.u8", 200);
  model.add<std::int8_t>("a.i8", -100);
  model.add<std::uint16_t>("a.u16", 65000);
  model.add<std::int16_t>("a.i16", -30000);
  model.add<std::uint32_t>("a.u32", 4000000000U);
  model.add<std::int32_t>("a.i32", -2000000000);
  model.add<std::uint64_t>("a.u64", ~std::uint64_t{0});
  model.add<std::int64_t>("a.i64", -(std::int64_t{1} << 62));
  model.add("a.f32", 0.1f);
  model.add("a.f64", 0.1);
  model.add("a.yes", true);
  model.add("a.no", false);
  model.add("a.empty", "");
  model.add_array<std::string>("b.texts", {"one", "", "drei"});
  model.add_array<std::int32_t>("b.integers", {1, -2, 3});
  model.add_array<float>("b.none", {});
  model.add_tensor<float>("one", TensorType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6});
  model.add_tensor<std::uint16_t>("two.weight", TensorType::kF16, {5}, {1, 2, 3, 4, 5});
  model.add_tensor("three", TensorType::kQ8_0, {32, 1, 2, 1}, Bytes(68, std::byte{7}));
  return model;
}

TEST_F(WrittenFile, HoldsTheKeysAndTensorsOfTheModel) {
  model_of_all_types().save(path("model.gguf"));
  const auto model = File::open(path("model.gguf"));
  ASSERT_TRUE(model.ok());
  write_copy(model.value(), path("copy.gguf"));
  const auto copy = File::open(path("copy.gguf"));
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  EXPECT_EQ(copy.value().version(), 3U);
  EXPECT_EQ(copy.value().metadata().entries().size(), model.value().metadata().entries().size());
  expect_keys_of(copy.value(), model.value().metadata());
  ASSERT_EQ(copy.value().tensors().size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(is_same_tensor(copy.value().tensors()[i], model.value().tensors()[i])) << i;
  }
}

TEST_F(WrittenFile, OfASplitModelIsOneFile) {
  GgufWriter model = model_of_all_types();
  model.set_alignment(64);
  const std::vector<std::string> parts = model.save_split(path("model"), 2);
  const auto split = File::open(parts.front());
  ASSERT_TRUE(split.ok()) << split.error().message;
  write_copy(split.value(), path("copy.gguf"));
  const auto copy = File::open(path("copy.gguf"));
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  EXPECT_EQ(copy.value().opened_parts().size(), 1U);
  EXPECT_FALSE(copy.value().metadata().contains("split.count"));
  ASSERT_EQ(copy.value().tensors().size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(is_same_tensor(copy.value().tensors()[i], split.value().tensors()[i])) << i;
  }
}

TEST_F(WrittenFile, HasTheDigestOfItsBytes) {
  Result<FileWriter> writer = FileWriter::create(path("abc"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer.value().append(bytes_of("a")).ok());
  ASSERT_TRUE(writer.value().append(bytes_of("bc")).ok());
  const Result<std::string> digest = writer.value().commit();
  ASSERT_TRUE(digest.ok());
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(digest.value(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(WrittenFile, ThatIsNotCommittedLeavesNothingAndKeepsTheOldOne) {
  write_file(path("model.gguf"), bytes_of("old"));
  {
    Result<FileWriter> writer = FileWriter::create(path("model.gguf"));
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer.value().append(bytes_of("new bytes")).ok());
    EXPECT_EQ(files(), 2U);
  }
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(std::filesystem::file_size(path("model.gguf")), 3U);
}

// A limit of the file's size is an error of write(), as a full disk is.
TEST_F(WrittenFile, ThatDoesNotFitIsAnErrorAndLeavesNothing) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status appended = ok_status();
  {
    Result<FileWriter> writer = FileWriter::create(path("model.gguf"));
    ASSERT_TRUE(writer.ok());
    appended = writer.value().append(Bytes(10000));
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(appended.ok());
  EXPECT_THAT(appended.error().message, HasSubstr("model.gguf.tmp: cannot write: File too large"));
  EXPECT_EQ(files(), 0U);
}

TEST_F(WrittenFile, InAFolderThatIsNotThereIsAnError) {
  const auto writer = FileWriter::create(path("none/model.gguf"));
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(writer.error().message, HasSubstr("none/model.gguf.tmp: cannot make: No such file"));
}

}  // namespace
}  // namespace pagoda::gguf
