// pagoda bench batch, depth, chunked and paging: what steps cost and how many share them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "bench/bench_command.h"

namespace pagoda::bench {
namespace {

using nlohmann::json;

// Outputs are long enough that the first still runs when the last is asked for on a busy machine.
TEST(BenchBatch, RatesFollowFromTheStepTimeAndTheBytesItReads) {
  const json report = bench_json("batch", {"--batch-sizes", "1,3,8", "--prompt-tokens", "20",
                                           "--new-tokens", "400", "--repeats", "2"});
  ASSERT_EQ(report["rows"].size(), 3);
  const std::uint64_t sizes[] = {1, 3, 8};
  for (std::size_t i = 0; i < 3; ++i) {
    const json& row = report["rows"][i];
    const double step = row["step_seconds"];
    const auto size = static_cast<double>(sizes[i]);
    EXPECT_EQ(row["batch_size"], sizes[i]);
    ASSERT_GT(step, 0);
    EXPECT_DOUBLE_EQ(row["tokens_per_second"], size / step);
    EXPECT_DOUBLE_EQ(row["tokens_per_second_each"], 1 / step);
    const double bytes = kStoryWeightBytes + size * (20 + 200) * kStoryKvBytesPerToken;
    EXPECT_NEAR(row["gigabytes_per_second"], bytes * 1e-9 / step, 1e-9);
  }
}

// A prompt that was asked before is in the tree: most of its tokens need no step of their own.
TEST(BenchBatch, TakesDraftsAndCountsStepsByThem) {
  const json report =
      bench_json("batch", {"--batch-sizes", "1,2", "--prompt-tokens", "20", "--new-tokens", "200",
                           "--repeats", "5", "--speculative-config", "tree"});
  EXPECT_EQ(report["settings"]["speculation"], "tree");
  ASSERT_EQ(report["rows"].size(), 2);
  for (const json& row : report["rows"]) {
    const double each = row["tokens_per_step"];
    EXPECT_GE(each, 1);
    EXPECT_DOUBLE_EQ(row["tokens_per_second_each"], each / row["step_seconds"].get<double>());
    EXPECT_DOUBLE_EQ(row["tokens_per_second"],
                     row["tokens_per_second_each"].get<double>() * row["batch_size"].get<double>());
  }
  EXPECT_GT(report["rows"][0]["tokens_per_step"], 1.5);
  const json plain = bench_json("batch", {"--batch-sizes", "1", "--prompt-tokens", "20",
                                          "--new-tokens", "40", "--repeats", "1"});
  EXPECT_FALSE(plain["rows"][0].contains("tokens_per_step"));
}

TEST(BenchDepth, WithoutDepthsTheyGoFromNothingToTheDeepestThatFits) {
  const json report = bench_json("depth", {"--new-tokens", "12", "--repeats", "1"});
  std::vector<std::uint64_t> depths;
  for (const json& row : report["rows"]) depths.push_back(row["depth"]);
  EXPECT_THAT(depths, testing::ElementsAre(0, 256, kStoryContext - 12));
}

std::string plot_of(const std::string& benchmark, std::vector<std::string> words) {
  const std::string path = testing::TempDir() + "/" + benchmark + ".svg";
  words.insert(words.end(), {"--new-tokens", "12", "--repeats", "1", "--plot", path});
  const cli::Captured captured = run_bench(benchmark, words);
  EXPECT_EQ(captured.exit_status, 0) << captured.err;
  std::ostringstream svg;
  svg << std::ifstream(path).rdbuf();
  return svg.str();
}

TEST(BenchPlots, HaveAPointForEveryRow) {
  const auto points = [](const std::string& svg) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = svg.find("<circle ", at)) != std::string::npos; ++at) ++found;
    return found;
  };
  const std::string depths = plot_of("depth", {"--depths", "0,40,80"});
  EXPECT_EQ(points(depths), 3);
  EXPECT_THAT(depths, testing::HasSubstr(">context tokens before decoding</text>"));
  EXPECT_THAT(depths, testing::HasSubstr("cx='325.0'")) << "40 is half way to 80";
  const std::string batches = plot_of("batch", {"--batch-sizes", "1,2,4", "--prompt-tokens", "4"});
  EXPECT_EQ(points(batches), 6) << "of all together, and of each";
  EXPECT_THAT(batches, testing::HasSubstr("cx='325.0'")) << "2 is half way to 4";
  EXPECT_THAT(run_bench("depth", {"--plot", "/does/not/exist.svg"}).err,
              testing::HasSubstr("--plot: cannot write '/does/not/exist.svg'"));
}

TEST(BenchDepth, RatesFollowFromTheStepTimeAndTheBytesItReads) {
  const json report = bench_json("depth", {"--depths", "0,40", "--new-tokens", "10", "--repeats",
                                           "1", "--kv-cache-dtype", "fp32"});
  ASSERT_EQ(report["rows"].size(), 2);
  const std::uint64_t tokens[] = {1 + 5, 40 + 5};  // a sequence needs one token to begin with
  for (std::size_t i = 0; i < 2; ++i) {
    const json& row = report["rows"][i];
    const double step = row["step_seconds"];
    ASSERT_GT(step, 0);
    EXPECT_DOUBLE_EQ(row["tokens_per_second"], 1 / step);
    EXPECT_EQ(row["kv_bytes"], tokens[i] * kStoryKvBytesPerToken * 2);
    const auto bytes =
        static_cast<double>(kStoryWeightBytes + tokens[i] * kStoryKvBytesPerToken * 2);
    EXPECT_NEAR(row["gigabytes_per_second"], bytes * 1e-9 / step, 1e-9);
  }
}

TEST(BenchChunked, EveryChunkGivesEachStreamATokenAndAWholePromptOne) {
  const json report =
      bench_json("chunked", {"--prompt-tokens", "200", "--max-num-batched-tokens", "23",
                             "--streams", "3", "--quiet-tokens", "4", "--repeats", "2"});
  ASSERT_EQ(report["rows"].size(), 3);
  const json& chunked = report["rows"][1];
  const json& whole = report["rows"][2];
  EXPECT_EQ(report["rows"][0]["prompt"], "none");
  EXPECT_EQ(chunked["batched_tokens_max"], 23);
  EXPECT_EQ(whole["batched_tokens_max"], 203);
  // Streams take 3 tokens of a step, the prompt the other 20: 10 steps, twice.
  EXPECT_EQ(chunked["gaps"], 2 * 3 * 10);
  EXPECT_EQ(whole["gaps"], 2 * 3 * 1);
  for (const json& row : report["rows"]) {
    EXPECT_GT(row["gaps"], 0);
    EXPECT_LE(row["p50_ms"], row["p95_ms"]);
    EXPECT_LE(row["p95_ms"], row["p99_ms"]);
    EXPECT_LE(row["p99_ms"], row["max_ms"]);
  }
  EXPECT_DOUBLE_EQ(report["p99_ratio"],
                   whole["p99_ms"].get<double>() / chunked["p99_ms"].get<double>());
}

TEST(BenchPaging, ASlabHoldsTheLongestContextAndPagesWhatIsThere) {
  const std::uint64_t slab_bytes = kStoryContext * kStoryKvBytesPerToken;
  const json report = bench_json(
      "paging", {"--kv-cache-memory-bytes", std::to_string(3 * slab_bytes), "--requests", "12",
                 "--prompt-tokens-min", "5", "--prompt-tokens-max", "60", "--new-tokens", "20"});
  ASSERT_EQ(report["rows"].size(), 2);
  const json& slabs = report["rows"][0];
  const json& pages = report["rows"][1];
  EXPECT_EQ(slabs["sequences_at_once"], 3);
  EXPECT_EQ(slabs["bytes_held_most"], 3 * slab_bytes);
  EXPECT_EQ(slabs["bytes_per_sequence"], slab_bytes);
  // 80 tokens are 5 pages, 12 times: 60 of the 96 that the memory of three slabs makes.
  EXPECT_EQ(pages["blocks"], 3 * kStoryContext / 16);
  EXPECT_EQ(pages["sequences_at_once"], 12);
  EXPECT_LE(pages["bytes_held_most"], 60 * 16 * kStoryKvBytesPerToken);
  EXPECT_LE(pages["bytes_per_sequence"], 5 * 16 * kStoryKvBytesPerToken);
  EXPECT_EQ(pages["preemptions"], 0);
  EXPECT_DOUBLE_EQ(report["sequences_ratio"], 4.0);
  EXPECT_DOUBLE_EQ(report["throughput_ratio"],
                   slabs["seconds"].get<double>() / pages["seconds"].get<double>());
}

}  // namespace
}  // namespace pagoda::bench
