// A cache folder of a test's own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace pagoda {

// While it lives, what the process keeps goes to an empty folder, which is removed behind it.
class CacheHome {
 public:
  CacheHome() : path_(testing::TempDir() + "cache-home-" + std::to_string(::getpid())) {
    if (const char* const before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    ::setenv("XDG_CACHE_HOME", path_.c_str(), 1);
  }
  ~CacheHome() {
    std::filesystem::remove_all(path_);
    if (before_) {
      ::setenv("XDG_CACHE_HOME", before_->c_str(), 1);
    } else {
      ::unsetenv("XDG_CACHE_HOME");
    }
  }
  CacheHome(const CacheHome&) = delete;
  CacheHome& operator=(const CacheHome&) = delete;

  std::string verdicts() const { return path_ + "/pagoda/verdicts"; }

 private:
  std::string path_;
  std::optional<std::string> before_;
};

}  // namespace pagoda
