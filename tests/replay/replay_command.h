// Runs pagoda replay inside the test process, on traces that tests write.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/captured_command.h"

namespace pagoda::replay {

struct Replayed {
  int status = -1;
  std::string out;
  std::string err;

  nlohmann::ordered_json json() const { return nlohmann::ordered_json::parse(out); }
};

// words: without the program's name and the command's
inline Replayed run_replay(std::vector<std::string> words) {
  words.insert(words.begin(), "replay");
  cli::Captured captured = cli::run_captured(words);
  return {captured.exit_status, std::move(captured.out), std::move(captured.err)};
}

// A file in the test's own folder.
inline std::string write_file(const std::string& name, const std::string& bytes) {
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::string path = ::testing::TempDir() + "pagoda_replay_" + test + "_" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

inline std::string trace_line(std::uint64_t input_length, const std::string& ids) {
  return "{\"timestamp\": 0, \"input_length\": " + std::to_string(input_length) +
         ", \"output_length\": 1, \"hash_ids\": [" + ids + "]}\n";
}

}  // namespace pagoda::replay
