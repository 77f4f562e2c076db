// A folder for the files of one benchmark.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/random.h"

namespace pagoda::bench {

// Names a folder below `parent` that nobody else has, and removes it with everything in it. Whoever
// writes there creates it.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::filesystem::path& parent)
      : path_(parent / fmt::format("pagoda-bench-{:016x}", fresh_seed())) {}
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace pagoda::bench
