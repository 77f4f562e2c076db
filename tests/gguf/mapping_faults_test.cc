// A mapped file whose bytes cannot be read ends the process with the file's name.
#include "gguf/mapping_faults.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gguf/mapped_file.h"

namespace pagoda::gguf {
namespace {

constexpr std::size_t kFileBytes = 1 << 16;

class MappingFaults : public testing::Test {
 protected:
  MappingFaults() : path_(testing::TempDir() + "truncated_" + std::to_string(getpid())) {
    std::ofstream(path_) << std::string(kFileBytes, 'x');
  }
  ~MappingFaults() override { std::filesystem::remove(path_); }

  // Reads the last byte of the mapped file; `prepare` may truncate the file before.
  template <class Prepare>
  [[noreturn]] void read_last_byte(const Prepare& prepare) const {
    report_mapping_faults();
    const auto file = MappedFile::open(path_).value();
    prepare();
    const volatile std::byte* const last = &file->bytes().back();
    std::exit(*last == std::byte{'x'} ? 0 : 2);
  }

  const std::string path_;
};

TEST_F(MappingFaults, AFileThatWasTruncatedIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(read_last_byte([] {}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(read_last_byte([&] { std::filesystem::resize_file(path_, 10); }),
              testing::ExitedWithCode(1),
              "error: .*truncated_[0-9]+: the model's file was truncated while it was in use");
}

// Of another mapping, or of this one once it is closed, nothing is said.
TEST_F(MappingFaults, OtherFaultsKeepTheirDefault) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto touch_another = [&] {
    report_mapping_faults();
    MappedFile::open(path_).value().reset();
    const int descriptor = ::open(path_.c_str(), O_RDONLY);
    const auto* const bytes =
        static_cast<char*>(mmap(nullptr, kFileBytes, PROT_READ, MAP_PRIVATE, descriptor, 0));
    std::filesystem::resize_file(path_, 0);
    std::exit(*static_cast<const volatile char*>(bytes));
  };
  EXPECT_EXIT(touch_another(), testing::KilledBySignal(SIGBUS), "^$");
}

}  // namespace
}  // namespace pagoda::gguf
