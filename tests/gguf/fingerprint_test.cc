#include "gguf/fingerprint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace pagoda::gguf {
namespace {

namespace fs = std::filesystem;

class Fingerprint : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("fingerprint_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name) << bytes;
    return (folder_ / name).string();
  }
  std::string memory() const { return (folder_ / "memory").string(); }

  fs::path folder_;
  std::atomic<bool> stop_{false};
};

TEST_F(Fingerprint, IsTheSha256OfAllBytesInOrder) {
  // The first test vector of FIPS 180-2: "abc".
  const std::string a = write("a", "a");
  const std::string b = write("b", "bc");
  EXPECT_EQ(fingerprint({a, b}, "", stop_).value(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_NE(fingerprint({b, a}, "", stop_).value(), fingerprint({a, b}, "", stop_).value());
}

TEST_F(Fingerprint, IsRememberedUntilTheFileChanges) {
  const std::string path = write("model", "first");
  const auto written = fs::last_write_time(path);
  const std::string first = fingerprint({path}, memory(), stop_).value();
  // The same size and time: what is remembered is taken.
  write("model", "other");
  fs::last_write_time(path, written);
  EXPECT_EQ(fingerprint({path}, memory(), stop_).value(), first);
  fs::last_write_time(path, written + std::chrono::seconds(1));
  EXPECT_NE(fingerprint({path}, memory(), stop_).value(), first);
}

TEST_F(Fingerprint, ADamagedMemoryIsReadOver) {
  const std::string path = write("model", "abc");
  write("memory", "nonsense\n\n" + std::string(1000, 'x') + "\n");
  EXPECT_EQ(fingerprint({path}, memory(), stop_).value(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(Fingerprint, NamesAFileThatIsNotThere) {
  const auto missing = fingerprint({"/nowhere/model"}, "", stop_);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("/nowhere/model"), std::string::npos);
}

TEST_F(Fingerprint, CanBeStopped) {
  stop_ = true;
  EXPECT_FALSE(fingerprint({write("model", "abc")}, memory(), stop_).ok());
  EXPECT_FALSE(fs::exists(memory()));
}

}  // namespace
}  // namespace pagoda::gguf
