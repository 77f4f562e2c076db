// pagoda bench cache and prefix: counts are arithmetic, ratios are those of the times shown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <span>

#include "bench/bench_command.h"
#include "bench/cache_figures.h"
#include "bench/plain_attention.h"
#include "bench/toy_model.h"

namespace pagoda::bench {
namespace {

using nlohmann::json;

TEST(BenchCache, WithoutTheCacheEveryTokenComputesAllBeforeIt) {
  const std::uint64_t prompt = 10;
  const std::uint64_t answer = 7;
  const json report =
      bench_json("cache", {"--prompt-tokens", "10", "--new-tokens", "7", "--repeats", "2"});
  ASSERT_EQ(report["rows"].size(), 2);
  const json& naive = report["rows"][0];
  const json& cached = report["rows"][1];
  EXPECT_EQ(naive["kv_cache"], "without");
  EXPECT_EQ(cached["kv_cache"], "with");
  EXPECT_EQ(naive["rows_computed"], answer * prompt + answer * (answer - 1) / 2);
  EXPECT_EQ(cached["rows_computed"], prompt + answer - 1);
  EXPECT_EQ(naive["repeats"], 2);
  EXPECT_EQ(cached["repeats"], 2);
  EXPECT_DOUBLE_EQ(report["speedup"],
                   naive["seconds"].get<double>() / cached["seconds"].get<double>());
  EXPECT_DOUBLE_EQ(cached["tokens_per_second"], answer / cached["seconds"].get<double>());
}

TEST(BenchCache, TheToyNeedsNoModelFile) {
  const cli::Captured captured = cli::run_captured(
      {"bench", "cache", "--toy", "--prompt-tokens", "20", "--new-tokens", "5", "--json"});
  ASSERT_EQ(captured.exit_status, 0) << captured.err;
  const json report = json::parse(captured.out);
  EXPECT_THAT(report["settings"]["model"].get<std::string>(), testing::HasSubstr("width 128"));
  EXPECT_EQ(report["rows"][0]["rows_computed"], 20 + 21 + 22 + 23 + 24);
  EXPECT_DOUBLE_EQ(report["speedup"], report["rows"][0]["seconds"].get<double>() /
                                          report["rows"][1]["seconds"].get<double>());
}

TEST(BenchCache, AToyShowsItsCacheAndThatItChangesNothing) {
  const cli::Captured captured =
      cli::run_captured({"bench", "cache", "--toy", "--prompt-tokens", "20", "--new-tokens", "5"});
  ASSERT_EQ(captured.exit_status, 0) << captured.err;
  EXPECT_THAT(captured.out, testing::HasSubstr("K and V of the cache: (4, 24, 32) each"));
  EXPECT_THAT(captured.out,
              testing::HasSubstr("largest absolute difference of logits with and without the "
                                 "cache: 0\n"));
}

TEST(BenchCache, TheTutorialsToyComputesWhatTutorialsCount) {
  const cli::Captured captured =
      cli::run_captured({"bench", "cache", "--tutorial", "--prompt-tokens", "10", "--new-tokens",
                         "3", "--repeats", "2", "--json"});
  ASSERT_EQ(captured.exit_status, 0) << captured.err;
  const json report = json::parse(captured.out);
  const json& naive = report["rows"][0];
  const json& cached = report["rows"][1];
  EXPECT_EQ(naive["rows_computed"], 11 + 12 + 13);
  EXPECT_EQ(cached["rows_computed"], 10 + 3);
  EXPECT_EQ(naive["repeats"], 2);
  EXPECT_EQ(report["kv_shape"], "(13, 128)");
  EXPECT_EQ(report["largest_difference"], 0);
  EXPECT_DOUBLE_EQ(report["speedup"],
                   naive["seconds"].get<double>() / cached["seconds"].get<double>());
}

TEST(BenchCache, TheTutorialsToyTakesTheTutorialsFlags) {
  const cli::Captured captured = cli::run_captured(
      {"bench", "cache", "--tutorial", "--prompt-len", "5", "--new-tokens", "1", "--repeats", "1"});
  ASSERT_EQ(captured.exit_status, 0) << captured.err;
  EXPECT_THAT(captured.out, testing::HasSubstr("K and V of the cache: (6, 128) each"));
}

// tests/data/plain_attention.txt: one head by numpy in float64.
TEST(PlainAttention, IsWhatNumpyComputes) {
  std::ifstream file(test_data() + "/plain_attention.txt");
  std::size_t width = 0;
  std::size_t tokens = 0;
  file >> width >> tokens;
  ASSERT_TRUE(file.good());
  const auto numbers = [&file](std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) file >> value;
    return values;
  };
  const PlainAttention attention(width, numbers(3 * width * width));
  const std::vector<float> inputs = numbers(tokens * width);
  const std::vector<float> expected = numbers(tokens * width);
  ASSERT_TRUE(file.good() || file.eof());
  PlainAttention::Cache cache;
  const std::vector<float> outputs = attention.forward(inputs, cache);
  ASSERT_EQ(outputs.size(), expected.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) EXPECT_NEAR(outputs[i], expected[i], 1e-5) << i;
  // The same one by one, to the bit.
  PlainAttention::Cache steps;
  std::vector<float> one_by_one;
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::vector<float> output =
        attention.forward(std::span(inputs).subspan(t * width, width), steps);
    one_by_one.insert(one_by_one.end(), output.begin(), output.end());
  }
  EXPECT_EQ(one_by_one, outputs);
  EXPECT_EQ(steps.keys, cache.keys);
  EXPECT_EQ(steps.values, cache.values);
}

TEST(CacheFigures, TheLargestDifferenceIsOfEitherSign) {
  EXPECT_EQ(largest_difference(std::vector{1.0f, 2.0f, 3.0f}, std::vector{1.0f, 4.5f, 2.0f}), 2.5);
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (*value != '\0') setenv(name, value, 1);
  }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// A flag that is typed outweighs the environment, and one for keys or values that for both.
TEST(BenchCache, TheDtypeIsThatOfTheFlagThatSaysMost) {
  struct Case {
    const char* both;  // environment variables; empty: none
    const char* keys;
    std::vector<std::string> words;
    const char* dtype;
  };
  for (const Case& c :
       {Case{"", "fp16", {"--kv-cache-dtype", "fp32"}, "fp32"},
        Case{"", "fp16", {"--kv_cache_dtype=fp32"}, "fp32"},
        Case{"bf16", "fp16", {"--kv-cache-dtype", "fp32"}, "fp32"},
        Case{"fp32", "fp16", {}, "fp16/fp32"}, Case{"fp32", "", {"-ctk", "fp16"}, "fp16/fp32"},
        Case{"", "fp16", {"-ctk", "bf16", "--kv-cache-dtype", "fp32"}, "bf16/fp32"},
        Case{"", "fp16", {"-ctk", "fp16", "--kv-cache-dtype", "fp32"}, "fp16/fp32"},
        Case{"", "none", {"--kv-cache-dtype", "fp32"}, "fp32"},
        Case{"", "", {"--kv-cache-dtype", "bf16/fp32"}, "bf16/fp32"},
        Case{"fp32/bf16", "", {}, "fp32/bf16"}}) {
    const Variable both("PAGODA_KV_CACHE_DTYPE", c.both);
    const Variable keys("PAGODA_CACHE_TYPE_K", c.keys);
    std::vector<std::string> words = {"bench",        "cache", "--toy",  "--prompt-tokens", "4",
                                      "--new-tokens", "2",     "--json", "--repeats",       "1"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    const cli::Captured captured = cli::run_captured(words);
    ASSERT_EQ(captured.exit_status, 0) << c.dtype << captured.err;
    EXPECT_EQ(json::parse(captured.out)["settings"]["kv_cache_dtype"], c.dtype) << c.keys;
  }
}

TEST(BenchCache, ADtypeThatTheModelCannotKeepIsRefused) {
  const cli::Captured captured = run_bench("cache", {"--kv-cache-dtype", "int4"});
  EXPECT_EQ(captured.exit_status, 1);
  EXPECT_THAT(captured.err, testing::HasSubstr("int4 needs heads of a multiple of 32 dimensions"));
}

TEST(ToyModel, IsOneAttentionLayerAndTheSameEveryTime) {
  const ToyModel toy(64);
  EXPECT_EQ(toy.config().layers, 1);
  EXPECT_EQ(toy.config().width, 128);
  EXPECT_EQ(toy.config().hidden_width, 0);
  ASSERT_EQ(toy.weights().layers.size(), 1);
  const auto values = [](const kernels::WeightMatrix& matrix) {
    const auto* const first = reinterpret_cast<const float*>(matrix.data);
    return std::vector<float>(first, first + matrix.rows * matrix.columns);
  };
  const model::LayerWeights& layer = toy.weights().layers.front();
  EXPECT_EQ(values(layer.query.weight).size(), 128 * 128);
  EXPECT_NE(values(layer.query.weight), values(layer.key.weight));
  const ToyModel again(64);
  EXPECT_EQ(values(layer.key.weight), values(again.weights().layers.front().key.weight));
}

// Whole blocks, a system prompt that ends inside a block, and one shorter than a block.
TEST(BenchPrefix, AWarmCacheSavesTheSystemPromptOfEveryQuestionExactly) {
  for (const std::uint64_t system : {96u, 100u, 7u}) {
    const std::uint64_t questions = 4;
    const std::uint64_t question = 9;
    const json report =
        bench_json("prefix", {"--questions", "4", "--system-tokens", std::to_string(system),
                              "--question-tokens", "9", "--new-tokens", "3", "--repeats", "2"});
    ASSERT_EQ(report["rows"].size(), 2);
    const json& off = report["rows"][0];
    const json& on = report["rows"][1];
    EXPECT_EQ(off["prompt_tokens_computed"], questions * (system + question));
    EXPECT_EQ(on["prompt_tokens_computed"], questions * question) << system;
    EXPECT_EQ(report["prefill_tokens_saved"], questions * system);
    EXPECT_DOUBLE_EQ(report["speedup"], off["first_token_seconds"].get<double>() /
                                            on["first_token_seconds"].get<double>());
    EXPECT_DOUBLE_EQ(report["speedup_end_to_end"],
                     off["total_seconds"].get<double>() / on["total_seconds"].get<double>());
  }
}

TEST(BenchPrefix, QuestionsThatCannotAllBeginDifferentlyAreRefused) {
  const cli::Captured captured =
      run_bench("prefix", {"--questions", "512", "--system-tokens", "8", "--new-tokens", "1"});
  EXPECT_EQ(captured.exit_status, 1);
  EXPECT_THAT(captured.err, testing::HasSubstr("--questions: 512"));
  EXPECT_THAT(captured.err, testing::HasSubstr("the vocabulary has 512"));
}

}  // namespace
}  // namespace pagoda::bench
