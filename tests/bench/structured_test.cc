// pagoda bench structured: every grammar is measured, on a model's vocabulary and on a tekken.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "bench/bench_command.h"

namespace pagoda::bench {
namespace {

void expect_rows(const nlohmann::json& report) {
  ASSERT_GE(report["rows"].size(), 9U);
  for (const nlohmann::json& row : report["rows"]) {
    EXPECT_GT(row["masks"], 3) << row;
    EXPECT_LE(row["mask_p50_microseconds"], row["mask_p90_microseconds"]) << row;
    EXPECT_LE(row["mask_p99_microseconds"], row["mask_max_microseconds"]) << row;
  }
}

TEST(BenchStructured, EveryGrammarIsMeasured) {
  const nlohmann::json report = bench_json("structured", {"--repeats", "1"});
  EXPECT_EQ(report["settings"]["tokens"], 512);
  EXPECT_EQ(report["settings"]["vocabulary"], "stories260K.gguf");
  for (const char* const which : {"batch_one_constrained_ratio", "batch_all_constrained_ratio"}) {
    EXPECT_GT(report[which], 0) << which;
  }
  expect_rows(report);
}

// Three control tokens, the 256 bytes, and room for no more.
TEST(BenchStructured, AVocabularyMayBeATekkenFile) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  nlohmann::json file = {
      {"config", {{"default_vocab_size", 259}, {"default_num_special_tokens", 3}}},
      {"vocab", nlohmann::json::array()}};
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string text = {kDigits[byte >> 2], kDigits[(byte & 3) << 4], '=', '='};
    file["vocab"].push_back({{"rank", byte}, {"token_bytes", text}});
  }
  file["vocab"].push_back({{"rank", 256}, {"token_bytes", "YWI="}});
  const std::string path = testing::TempDir() + "tekken-" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << file.dump();
  const cli::Captured captured =
      cli::run_captured({"bench", "structured", path, "--repeats", "1", "--json"});
  ASSERT_EQ(captured.exit_status, 0) << captured.err;
  const nlohmann::json report = nlohmann::json::parse(captured.out);
  EXPECT_EQ(report["settings"]["tokens"], 259);
  expect_rows(report);
  std::ofstream(path) << "{}";
  const cli::Captured wrong = cli::run_captured({"bench", "structured", path});
  EXPECT_NE(wrong.exit_status, 0);
  EXPECT_THAT(wrong.err, testing::HasSubstr("is no tekken.json"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace pagoda::bench
