// pagoda bench kernels, small: every operation is there, its numbers agree with each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "bench/bench_command.h"

namespace pagoda::bench {
namespace {

using testing::HasSubstr;

nlohmann::json kernels_json(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"bench",  "kernels", "--json",   "--seconds", "0.001",
                                    "--rows", "1,3",     "--depths", "40"};
  words.insert(words.end(), more.begin(), more.end());
  const cli::Captured captured = cli::run_captured(words);
  EXPECT_EQ(captured.exit_status, 0) << captured.err;
  return nlohmann::json::parse(captured.out);
}

class BenchKernels : public testing::Test {
 protected:
  // The default shape, measured once for all.
  static const nlohmann::json& report() {
    static const nlohmann::json kReport = kernels_json({});
    return kReport;
  }
};

TEST_F(BenchKernels, EveryOperationIsMeasuredForEveryNumberOfTokens) {
  const nlohmann::json& json = report();
  std::map<std::string, std::set<std::uint64_t>> rows;
  for (const nlohmann::json& row : json["rows"]) {
    rows[row["operation"]].insert(row["rows"].get<std::uint64_t>());
    EXPECT_GT(row["microseconds"], 0);
    EXPECT_GT(row["share_percent"], 0);
  }
  for (const char* const operation :
       {"matmul query", "matmul key, value", "matmul attention output", "matmul gate, up",
        "matmul down", "matmul logits", "attention", "rms norm", "rope", "swiglu"}) {
    EXPECT_EQ(rows[operation], (std::set<std::uint64_t>{1, 3})) << operation;
  }
  EXPECT_EQ(rows.size(), 10u);
}

TEST_F(BenchKernels, RatesAreBytesAndMultiplyAddsOverTime) {
  const nlohmann::json& json = report();
  const auto find = [&](const std::string& operation, std::uint64_t rows) {
    for (const nlohmann::json& row : json["rows"]) {
      if (row["operation"] == operation && row["rows"] == rows) return row;
    }
    return nlohmann::json();
  };
  // SmolLM2-135M: 576 to 1536 in Q4_1, 18 blocks of 20 bytes a row.
  const nlohmann::json gate = find("matmul gate, up", 3);
  const double gate_us = gate["microseconds"];
  EXPECT_NEAR(gate["gigabytes_per_second"].get<double>() * gate_us * 1e3, 1536 * 18 * 20, 1);
  EXPECT_NEAR(gate["tera_multiply_adds_per_second"].get<double>() * gate_us * 1e6, 3 * 1536 * 576,
              1);
  // Three rows behind 40 keys see 41, 42 and 43; 9 heads, 64 + 64 values; 3 KV heads in fp16.
  const nlohmann::json attention = find("attention", 3);
  const double attention_us = attention["microseconds"];
  EXPECT_NEAR(attention["tera_multiply_adds_per_second"].get<double>() * attention_us * 1e6,
              (41 + 42 + 43) * 9 * 128, 1);
  EXPECT_NEAR(attention["gigabytes_per_second"].get<double>() * attention_us * 1e3,
              43 * 3 * 128 * 2, 1);
  EXPECT_TRUE(find("rms norm", 1)["tera_multiply_adds_per_second"].is_null());
}

TEST_F(BenchKernels, ARunSaysWhatTheMachineGaveAndWhetherItStayedSo) {
  const nlohmann::json& json = report();
  EXPECT_GE(json["machine_gave"]["reads"].size(), 2u);
  EXPECT_GE(json["machine_gave"]["multiplies"].size(), 1u);
  EXPECT_EQ(json["valid"], json["moved"].empty());
}

TEST_F(BenchKernels, OtherShapesAndTypesAreMeasuredToo) {
  const nlohmann::json json = kernels_json({"--shape", "llama-3.2-1b", "--type", "Q8_0"});
  EXPECT_EQ(json["settings"]["shape"], "llama-3.2-1b");
  EXPECT_EQ(json["rows"][0]["shape"], "2048 -> 2048 Q8_0");
}

TEST_F(BenchKernels, WhatMakesNoSenseIsRefusedByName) {
  const std::vector<std::vector<std::string>> cases = {
      {"--shape", "gpt"}, {"--type", "Q9"},   {"--type", "Q4_K"},  // 576 is not whole blocks
      {"--rows", "0"},    {"--seconds", "0"}, {"--depths", "-1"}};
  for (const std::vector<std::string>& flags : cases) {
    std::vector<std::string> words = {"bench", "kernels"};
    words.insert(words.end(), flags.begin(), flags.end());
    const cli::Captured captured = cli::run_captured(words);
    EXPECT_EQ(captured.exit_status, 2) << flags[0] << ' ' << flags[1];
    EXPECT_THAT(captured.err, HasSubstr(flags[0]));
    EXPECT_EQ(captured.out, "");
  }
}

}  // namespace
}  // namespace pagoda::bench
