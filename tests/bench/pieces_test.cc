// What benchmarks are made of: samples, bytes, machines, tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/decode_traffic.h"
#include "bench/decode.h"
#include "bench/samples.h"
#include "terminal/bench_machine.h"
#include "terminal/bench_report.h"

namespace pagoda::bench {
namespace {

TEST(BenchSamples, AMedianIsTheMiddleOrBetweenTheTwoThere) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({8, 2, 4, 100}), 6);
}

TEST(BenchSamples, APercentileIsTheNearestRank) {
  std::vector<double> hundred;
  for (int i = 100; i >= 1; --i) hundred.push_back(i);
  EXPECT_EQ(percentile(hundred, 0.5), 50);
  EXPECT_EQ(percentile(hundred, 0.95), 95);
  EXPECT_EQ(percentile(hundred, 0.99), 99);
  EXPECT_EQ(percentile(hundred, 1.0), 100);
  EXPECT_EQ(percentile({15, 20, 35, 40, 50}, 0.3), 20) << "the textbook's example";
  EXPECT_EQ(percentile({3}, 0.01), 3);
}

TEST(BenchDecode, OnlyStepsInWhichAllRunAreCounted) {
  const auto seconds = [](std::vector<std::vector<std::int64_t>> times) {
    for (auto& answer : times) {
      for (std::int64_t& time : answer) time *= 1'000'000'000;
    }
    return shared_step_seconds(times);
  };
  EXPECT_DOUBLE_EQ(seconds({{10, 12, 14, 16}}).value(), 2);
  // The second begins at 30, the first ends at 60: three steps of 10; those of 1 do not count.
  EXPECT_DOUBLE_EQ(seconds({{28, 29, 40, 50, 60}, {30, 41, 51, 61, 62}}).value(), 10);
  EXPECT_EQ(seconds({{1, 2, 3}, {3, 4, 5}}), std::nullopt) << "never together";
}

TEST(BenchTraffic, AWindowBoundsTheKeysOfItsLayersAlone) {
  model::Config config;
  config.layers = 3;
  config.kv_heads = 2;
  config.key_dim = 4;
  config.value_dim = 6;
  config.attention = {{.window = 8}, {.window = 0}, {.window = 8}};
  const std::uint64_t row_bytes = 2 * (4 + 6) * 2;
  const auto element = kv::memory::Element::kBF16;
  EXPECT_EQ(app::kv_bytes_per_token(config, element), 3 * row_bytes);
  EXPECT_EQ(app::kv_bytes_read(config, element, 5), 3 * 5 * row_bytes);
  EXPECT_EQ(app::kv_bytes_read(config, element, 100), (8 + 100 + 8) * row_bytes);
}

TEST(BenchTraffic, EveryMatrixCountsOnceAndTheEmbeddingNever) {
  const auto matrix = [](std::size_t rows, std::size_t row_bytes) {
    kernels::WeightMatrix result;
    result.rows = rows;
    result.row_bytes = row_bytes;
    return result;
  };
  model::Weights weights;
  weights.embedding = matrix(1000, 1000);
  weights.output = matrix(10, 7);
  weights.layers.resize(2);
  for (model::LayerWeights& layer : weights.layers) {
    layer.query.weight = matrix(1, 1);
    layer.key.weight = matrix(2, 1);
    layer.value.weight = matrix(4, 1);
    layer.attention_output.weight = matrix(8, 1);
    layer.gate.weight = matrix(16, 1);
    layer.up.weight = matrix(32, 1);
    layer.down.weight = matrix(64, 1);
  }
  EXPECT_EQ(app::weight_bytes_read(weights), 70 + 2 * 127);
}

TEST(BenchMachine, CpusAreNamedAsTheKernelSaysOrByTheirPartNumber) {
  EXPECT_EQ(terminal::cpu_name("processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.50GHz\n"),
            "Some CPU @ 2.50GHz");
  const std::string arm =
      "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x1\nCPU part\t: ";
  EXPECT_EQ(terminal::cpu_name(arm + "0xd40\n"), "Neoverse-V1");
  EXPECT_EQ(terminal::cpu_name(arm + "0xfff\n"), "implementer 0x41 part 0xfff");
  EXPECT_EQ(terminal::cpu_name("CPU implementer\t: 0x61\nCPU part\t: 0xd40\n"),
            "implementer 0x61 part 0xd40");
  EXPECT_EQ(terminal::cpu_name(""), "unknown");
}

TEST(BenchReport, ATableAndItsJsonSayTheSame) {
  terminal::BenchReport report("made up", {{"name", "name"}, {"count", "count"}, {"ms", "ms", 1}});
  report.add_setting("prompt_tokens", 12);
  report.add_row({"a long name", 1234567, 1.25});
  report.add_row({"b", nullptr, 100.0});
  report.add_figure("speedup", 2.5, "2.5x");
  const terminal::BenchMachine machine = {"Some CPU", 3, "arch", "ref 1", "build"};
  EXPECT_EQ(report.text(machine, "pagoda bench it"),
            "command   pagoda bench it\n"
            "machine   3 x Some CPU (arch), kernels ref 1, build\n"
            "settings  prompt tokens 12\n"
            "\n"
            "name             count     ms\n"
            "a long name  1,234,567    1.2\n"
            "b                    -  100.0\n"
            "\n"
            "2.5x\n");
  EXPECT_EQ(report.json(machine, "pagoda bench it"), nlohmann::ordered_json::parse(R"({
    "benchmark": "made up",
    "machine": {"cpu": "Some CPU", "cores": 3, "architecture": "arch", "kernels": "ref 1",
                "build": "build"},
    "command": "pagoda bench it",
    "settings": {"prompt_tokens": 12},
    "speedup": 2.5,
    "rows": [{"name": "a long name", "count": 1234567, "ms": 1.25},
             {"name": "b", "count": null, "ms": 100.0}]})"));
}

}  // namespace
}  // namespace pagoda::bench
