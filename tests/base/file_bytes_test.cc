#include "base/file_bytes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace pagoda {
namespace {

class FileBytesTest : public testing::Test {
 protected:
  FileBytesTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("pagoda_bytes_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~FileBytesTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ / name; }
  std::string write(const std::string& bytes) const {
    std::ofstream(path("file"), std::ios::binary) << bytes;
    return path("file");
  }

  std::filesystem::path folder_;
};

TEST_F(FileBytesTest, AreThoseOfTheFileUpToItsLimit) {
  for (const std::size_t size : {0, 1, 4096, 100'000}) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7);
    EXPECT_EQ(read_file_bytes(write(bytes), size).value().bytes, bytes);
    if (size > 0) {
      EXPECT_FALSE(read_file_bytes(write(bytes), size - 1).ok());
    }
  }
}

TEST_F(FileBytesTest, WhateverElseStandsThereIsAnErrorWithThePath) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& wrong :
       {folder_.string(), path("missing"), write("x") + "/below", std::string("/proc/self/mem"),
        std::string("/dev/zero"), std::string()}) {
    const Result<FileBytes> read = read_file_bytes(wrong, 1 << 20);
    ASSERT_FALSE(read.ok()) << wrong;
    EXPECT_TRUE(read.error().message.starts_with(wrong + ": ")) << read.error().message;
  }
  EXPECT_EQ(read_file_bytes(path("pipe"), 100).value().bytes, "") << "nobody writes to it";
}

TEST_F(FileBytesTest, OfAPipeAreThoseThatItsWriterGives) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    for (const char* const part : {"one ", "two"}) {
      ::usleep(20'000);
      ASSERT_GT(::write(ends[1], part, std::string_view(part).size()), 0);
    }
    ::close(ends[1]);
  });
  EXPECT_EQ(read_file_bytes("/dev/fd/" + std::to_string(ends[0]), 100).value().bytes, "one two");
  writer.join();
  ::close(ends[0]);
}

TEST_F(FileBytesTest, SayWhoElseMayReadThem) {
  const std::string file = write("x");
  for (const unsigned mode : {0600u, 0400u, 0700u, 0640u, 0604u, 0644u, 0620u, 0660u}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    const FileBytes read = read_file_bytes(file, 10).value();
    EXPECT_EQ(read.mode, mode);
    EXPECT_EQ(read.is_open_to_others(), (mode & 0077) != 0);
  }
}

}  // namespace
}  // namespace pagoda
