// Runs a command line inside the test process and keeps what it printed.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands.h"

namespace pagoda::cli {

struct Captured {
  int exit_status;
  std::string out;
  std::string err;
};

// words: without the program's name
inline Captured run_captured(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"pagoda"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int exit_status = run_command_line(static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);
  std::string out = testing::internal::GetCapturedStdout();
  return {exit_status, std::move(out), testing::internal::GetCapturedStderr()};
}

}  // namespace pagoda::cli
