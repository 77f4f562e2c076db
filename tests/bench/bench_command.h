// Runs a benchmark on the small story model and reads its JSON.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/captured_command.h"
#include "test_data.h"

namespace pagoda::bench {

// stories260K: 5 layers of width 64, 4 KV heads of 8 + 8 values, float32 weights.
inline constexpr std::uint64_t kStoryContext = 512;
inline constexpr std::uint64_t kStoryKvBytesPerToken = 5 * 4 * (8 + 8) * 2;  // fp16
inline constexpr std::uint64_t kStoryLayerWeights =
    2 * 64 * 64 + 2 * 32 * 64 + 3 * 172 * 64;  // query, output; key, value; feed-forward
inline constexpr std::uint64_t kStoryWeightBytes = (5 * kStoryLayerWeights + 512 * 64) * 4;

inline std::string story_model() { return test_data() + "/models/stories260K.gguf"; }

inline cli::Captured run_bench(const std::string& benchmark, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"bench", benchmark, story_model()};
  words.insert(words.end(), more.begin(), more.end());
  return cli::run_captured(words);
}

inline nlohmann::json bench_json(const std::string& benchmark, std::vector<std::string> more) {
  more.emplace_back("--json");
  const cli::Captured captured = run_bench(benchmark, more);
  EXPECT_EQ(captured.exit_status, 0) << captured.err;
  nlohmann::json json = nlohmann::json::parse(captured.out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << captured.out;
  EXPECT_EQ(json.value("benchmark", ""), benchmark);
  return json;
}

}  // namespace pagoda::bench
