// Flags that people bring from other servers and from tutorials: names of ours, and what is said
// where a flag cannot do what it does elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/device_choice.h"
#include "bench/bench_command.h"
#include "cli/captured_command.h"
#include "cli/foreign_commands.h"
#include "skip_reasons.h"
#include "test_data.h"

namespace pagoda::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Brought {
  std::vector<std::string> words;  // the last is a value that is refused
  const char* error;
};

TEST(BroughtFlags, AnErrorSaysByWhichNameItsFlagWasGiven) {
  const auto error = [](std::vector<std::string> words) { return run_captured(words).err; };
  EXPECT_THAT(error({"run", "-p", "x", "--draft-max", "100"}),
              StartsWith("error: --spec-draft-n-max: 100 is not a whole number from 0 to 63 (given "
                         "as --draft-max)\n"));
  EXPECT_THAT(error({"run", "-p", "x", "--draft_max=100"}), HasSubstr("(given as --draft-max)\n"));
  EXPECT_THAT(error({"run", "-p", "x", "--spec-draft-n-max", "100"}), Not(HasSubstr("given as")));
  EXPECT_THAT(error({"serve", "-np", "0"}), Not(HasSubstr("given as")));
}

// The error names our flag: the other name has led to it.
TEST(BroughtFlags, AreNamesOfOurs) {
  const std::vector<Brought> all = {
      {{"serve", "--mem-fraction-static", "2"}, "--gpu-memory-utilization: 2 is not a number"},
      {{"run", "--mem_fraction_static", "2"}, "--gpu-memory-utilization: 2 is not a number"},
      {{"serve", "--max_batch_size", "0"}, "--max-num-seqs: 0 is not a whole number"},
      {{"serve", "--max-batch-size", "0"}, "--max-num-seqs: 0 is not a whole number"},
      {{"serve", "--max-running-requests", "0"}, "--max-num-seqs: 0 is not a whole number"},
      {{"serve", "-np", "0"}, "--max-num-seqs: 0 is not a whole number"},
      {{"serve", "-ctk", "q8_1"}, "--cache-type-k: q8_1 is not one of"},
      {{"serve", "--cache-type-v", "q8_1"}, "--cache-type-v: q8_1 is not one of"},
      {{"run", "-p", "a", "-ctv", "q8_1"}, "--cache-type-v: q8_1 is not one of"},
      {{"serve", "--kv-offloading-size", "much"}, "--kv-offloading-size: 'much"},
      {{"bench", "cache", "--toy", "--prompt-len", "0"}, "--prompt-tokens: 0 is not a whole"},
      {{"bench", "cache", "--toy", "--hidden-size", "33"}, "--hidden-size: is no multiple of 32"},
      {{"bench", "cache", "--tutorial", "--hidden-size", "0"}, "--hidden-size: 0 is not a whole"},
      {{"bench", "cache", "--tutorial", "--prefix-len", "0"}, "--prefix-len: 0 is not a whole"},
      {{"bench", "cache", "--tutorial", "--seq-len", "1"}, "--seq-len: 1 is not a whole"},
      {{"bench", "cache", "--tutorial", "--seq-len", "4", "--new-tokens", "4"},
       "--seq-len: 4 holds no more than --new-tokens 4"},
      {{"bench", "cache", "--toy", "--seq-len", "4"}, "--seq-len: only with --tutorial"},
      {{"bench", "cache", "--seed", "4"}, "--seed: only with --toy or --tutorial"},
      {{"plan", "--memory", "1GiB", "--weights", "1MB", "--dtype", "int3"}, "--kv: 'int3' is not"},
      {{"plan", "--memory", "1GiB", "--weights", "1MB", "--bytes-per-element", "3"},
       "--bytes-per-element: '3' is not 4, 2 or 1"},
      {{"plan", "--batch-size", "0"}, "--requests: 0 is not a whole number"},
      {{"plan", "--sequence-length", "x"}, "--context: x is not"},
      {{"plan", "--query-heads", "0"}, "--num-heads: 0 is not a whole number"},
      {{"size", "--compare-heads", "--query-heads", "0"}, "--num-heads: '0' is not a whole number"},
      {{"size", "--bytes-per-element", "3"}, "--bytes-per-element: '3' is not 4, 2 or 1"}};
  for (const Brought& each : all) {
    const Captured answer = run_captured(each.words);
    EXPECT_EQ(answer.exit_status, 2) << answer.err;
    EXPECT_THAT(answer.err, HasSubstr("error: " + std::string(each.error)));
    EXPECT_THAT(answer.err, Not(HasSubstr("unknown")));
  }
}

TEST(BroughtFlags, OfSizeSayWhatOursSay) {
  const auto told = [](std::vector<std::string> words) {
    words.insert(words.begin(), "size");
    const Captured answer = run_captured(words);
    EXPECT_EQ(answer.exit_status, 0) << answer.err;
    return answer.out;
  };
  EXPECT_EQ(told({"--bytes-per-element", "4"}), told({"--dtype", "fp32"}));
  EXPECT_EQ(told({"--bytes-per-element", "2"}), told({}));
  EXPECT_EQ(told({"--bytes-per-element", "1"}), told({"--dtype", "fp8_e5m2"}));
  EXPECT_EQ(told({"--max-model-len", "4K", "--max-num-seqs", "3", "--kv-cache-dtype", "int8",
                  "--tensor-parallel-size", "2"}),
            told({"--sequence-length", "4096", "--batch-size", "3", "--dtype", "int8", "--tp-size",
                  "2"}));
  EXPECT_EQ(told({"--context", "4096", "--requests", "3", "--kv", "int8"}),
            told({"--sequence-length", "4096", "--batch-size", "3", "--dtype", "int8"}));
  EXPECT_EQ(told({"--compare-heads", "--query-heads", "16"}),
            told({"--compare-heads", "--num-heads", "16"}));
  EXPECT_THAT(run_captured({"size", "--bytes-per-element", "2", "--dtype", "int8"}).err,
              HasSubstr("--dtype cannot be combined with --bytes-per-element"));
}

TEST(BroughtFlags, OfPlanSayWhatOursSay) {
  const auto told = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"plan", "--weights", "1GB", "--memory", "8GiB"});
    const Captured answer = run_captured(words);
    EXPECT_EQ(answer.exit_status, 0) << answer.err;
    return answer.out;
  };
  EXPECT_EQ(told({"--dtype", "int8", "--batch-size", "9", "--sequence-length", "4K"}),
            told({"--kv", "int8", "--requests", "9", "--context", "4096"}));
  EXPECT_EQ(told({"--bytes-per-element", "2.0"}), told({"--kv", "bf16"}));
  EXPECT_EQ(told({"--bytes-per-element", "4"}), told({"--kv", "fp32"}));
  EXPECT_EQ(told({"--query-heads", "32"}), told({"--num-kv-heads", "32"}));
  EXPECT_EQ(told({"--query-heads", "32", "--num-kv-heads", "4"}), told({"--num-kv-heads", "4"}));
}

// vLLM's several names behind one flag. What is a file is the model, where no other word names one.
TEST(BroughtFlags, SeveralServedNamesMayStandBehindOneFlag) {
  const std::string flag = "--served-model-name";
  EXPECT_THAT(with_each_served_name({"serve", "m", flag, "a", "b", "--port", "9"}),
              ElementsAre("serve", "m", flag, "a", flag, "b", "--port", "9"));
  EXPECT_THAT(with_each_served_name({"serve", flag, "a", "b", "-m", "m"}),
              ElementsAre("serve", flag, "a", flag, "b", "-m", "m"));
  EXPECT_THAT(with_each_served_name({"serve", flag, "a", "b"}),
              ElementsAre("serve", flag, "a", flag, "b"))
      << "of the default model";
  EXPECT_THAT(with_each_served_name({"serve", flag, "a", "b", "m.gguf", "--port", "9"}),
              ElementsAre("serve", flag, "a", flag, "b", "m.gguf", "--port", "9"))
      << "the model";
  EXPECT_THAT(with_each_served_name({"serve", flag, "a", test_data()}),
              ElementsAre("serve", flag, "a", test_data()))
      << "the model";
  EXPECT_THAT(with_each_served_name({"serve", "-m", "m", "--", flag, "a", "b"}),
              ElementsAre("serve", "-m", "m", "--", flag, "a", "b"));
  EXPECT_THAT(run_captured({"serve", "/no/such.gguf", "--served_model_name", "a", "b"}).err,
              HasSubstr("/no/such.gguf"));
}

TEST(BroughtFlags, TheToyAndTheTutorialAreNotMeasuredTogether) {
  const Captured answer = run_captured({"bench", "cache", "--toy", "--tutorial"});
  EXPECT_EQ(answer.exit_status, 2);
  EXPECT_THAT(answer.err, HasSubstr("--tutorial"));
}

TEST(BroughtFlags, OfTheToyChangeItsShape) {
  const Captured answer =
      run_captured({"bench", "cache", "--toy", "--prompt-len", "5", "--new-tokens", "3",
                    "--hidden-size", "64", "--repeats", "1", "--json"});
  EXPECT_EQ(answer.exit_status, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("\"prompt_tokens\": 5"));
  EXPECT_THAT(answer.out, HasSubstr("layer of width 64"));
  EXPECT_THAT(run_captured({"bench", "cache", "--hidden-size", "64"}).err, HasSubstr("--toy"));
  const auto without_times = [](const char* seed) {
    const Captured of_seed = run_captured({"bench", "cache", "--tutorial", "--prefix-len", "5",
                                           "--hidden-size", "8", "--seed", seed, "--repeats", "1"});
    EXPECT_EQ(of_seed.exit_status, 0) << of_seed.err;
    return of_seed.out.substr(of_seed.out.find("output of the last vector"));
  };
  EXPECT_EQ(without_times("0"), without_times("0"));
  EXPECT_NE(without_times("0"), without_times("1"));
}

// The three scripts: no cache, with cache, and the benchmark.
TEST(BroughtFlags, OfTheTutorialsScriptsShapeTheirToy) {
  const auto told = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"bench", "cache", "--tutorial", "--repeats", "1"});
    const Captured answer = run_captured(words);
    EXPECT_EQ(answer.exit_status, 0) << answer.err;
    return answer.out;
  };
  const std::string no_cache = told({"--seq-len", "6", "--hidden-size", "8", "--seed", "0"});
  EXPECT_THAT(no_cache, HasSubstr("inputs and outputs: (6, 8) each\n"));
  EXPECT_THAT(no_cache, testing::ContainsRegex("output of the last vector:( -?[0-9.]+){8}\n"));
  const std::string with_cache = told({"--prefix-len", "5", "--hidden-size", "8", "--seed", "0"});
  EXPECT_THAT(with_cache, HasSubstr("K and V of the cache: (6, 8) each"));
  EXPECT_THAT(with_cache, HasSubstr("with and without the cache: 0\n"));
  EXPECT_EQ(no_cache.substr(no_cache.find("output of")),
            with_cache.substr(with_cache.find("output of")));
  EXPECT_THAT(told({"--prompt-len", "20", "--new-tokens", "4", "--hidden-size", "64"}),
              HasSubstr("K and V of the cache: (24, 64) each"));
}

// vLLM counts the size of its offloading in GiB.
TEST(BroughtFlags, AHostTierIsInGibibytesWhereVllmCountsIt) {
  const auto told = [](const char* flag, const char* size) {
    return run_captured({"serve", flag, size, "--host", "no.such.host.invalid"});
  };
  EXPECT_EQ(told("--kv-host-size", "8").exit_status, 2) << "a unit was forgotten";
  for (const char* const size : {"8", "0.5", "8GiB"}) {
    const Captured answer = told("--kv-offloading-size", size);
    EXPECT_EQ(answer.exit_status, 1) << "nothing but the host is wrong";
    EXPECT_THAT(answer.err, HasSubstr("no.such.host.invalid"));
  }
  EXPECT_THAT(run_captured({"serve", "--kv-offloading-size", "8", "--kv-host-size", "8GiB"}).err,
              HasSubstr("--kv-host-size"));
}

TEST(BroughtFlags, ChunkedPrefillIsTakenAndItsNegationRefusedWithTheReason) {
  EXPECT_THAT(run_captured({"serve", "--enable_chunked_prefill", "--port", "x"}).err,
              StartsWith("warning: vLLM's --enable_chunked_prefill does nothing here: always on"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"serve", "--no-enable-chunked-prefill"},
        {"serve", "--enable-chunked-prefill=false"},
        {"serve", "--enable-chunked-prefill", "False"},
        {"serve", "--no-cont-batching"}}) {
    const Captured answer = run_captured(words);
    EXPECT_EQ(answer.exit_status, 2);
    EXPECT_THAT(answer.err, testing::ContainsRegex("^error: unknown option --[a-z-]+ \\("));
    EXPECT_THAT(answer.err, HasSubstr("always")) << answer.err;
  }
}

TEST(BroughtFlags, AnUnknownOptionIsNamedOnceWithTheNearestAndItsCommand) {
  EXPECT_EQ(run_captured({"serve", "--max-num-seq", "4", "--max-num-seq", "5"}).err,
            "error: unknown option --max-num-seq (did you mean --max-num-seqs?)\n"
            "see: pagoda serve --help\n");
  EXPECT_EQ(run_captured({"bench", "cache", "--prompt-lens=4"}).err,
            "error: unknown option --prompt-lens (did you mean --prompt-len?)\n"
            "see: pagoda bench cache --help\n");
}

Captured run_story_with(std::vector<std::string> more) {
  std::vector<std::string> words = {"run", bench::story_model(), "-p", "Once", "-n", "2"};
  words.insert(words.end(), more.begin(), more.end());
  return run_captured(words);
}

TEST(BroughtFlags, WhatBoundsAGpusMemorySaysThatItBoundsNothingOnACpu) {
  const Captured plain = run_story_with({"--device", "cpu"});
  EXPECT_THAT(plain.err, Not(HasSubstr("warning")));
  const Captured share = run_story_with({"--device", "cpu", "--gpu-memory-utilization", "0.5"});
  EXPECT_EQ(share.exit_status, 0);
  EXPECT_EQ(share.out, plain.out);
  EXPECT_THAT(share.err, HasSubstr("warning: --gpu-memory-utilization bounds nothing on a CPU"));
  const Captured usual = run_story_with({"--device", "cpu", "--gpu-memory-utilization", "0.92"});
  EXPECT_THAT(usual.err, HasSubstr("warning: --gpu-memory-utilization bounds nothing on a CPU"))
      << "also what is the default";
  EXPECT_THAT(run_story_with({"--device", "cpu", "--num-gpu-blocks-override", "64"}).err,
              HasSubstr("warning: --num-gpu-blocks-override bounds nothing here"));
}

TEST(BroughtFlags, CudaWithoutADriverIsToldSo) {
  if (app::shows_nvidia_gpu()) GTEST_SKIP() << kNeedsNoGpu << ": there is one";
  const Captured answer = run_story_with({"--device", "cuda"});
  EXPECT_EQ(answer.exit_status, 1);
  EXPECT_THAT(answer.err,
              StartsWith("error: --device cuda: there is no NVIDIA driver on this machine ("));
}

TEST(BroughtFlags, AContextBeyondTheTrainedOneIsAWarning) {
  constexpr const char* kWarning =
      "warning: --max-model-len 600 is beyond the 512 tokens the model was trained on";
  EXPECT_THAT(run_story_with({"-c", "600"}).err, HasSubstr(kWarning));
  EXPECT_THAT(run_story_with({"-c", "512"}).err, Not(HasSubstr("warning")));
  const Captured chat = run_captured({"chat", bench::story_model(), "-p", "Once", "-n", "1", "-c",
                                      "600", "--chat-template", "/no/such/template"});
  EXPECT_THAT(chat.err, HasSubstr(kWarning));
}

TEST(BroughtFlags, AModelThatIsNoFileIsAnsweredWithWhatItMayBe) {
  for (const char* const model : {"/no/such/model.gguf", "./model", "nowhere.gguf"}) {
    const Captured answer = run_captured({"run", "-m", model, "-p", "x"});
    EXPECT_EQ(answer.exit_status, 1);
    EXPECT_THAT(answer.err, HasSubstr("a model is a GGUF file, a folder with config.json and "
                                      "*.safetensors, or a name such as Qwen/Qwen3-0.6B"));
  }
}

}  // namespace
}  // namespace pagoda::cli
