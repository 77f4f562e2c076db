// pagoda bench, whatever the benchmark: reports, refusals, Ctrl-C.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <thread>

#include "bench/bench_command.h"

namespace pagoda::bench {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::vector<std::string> kBenchmarks = {"cache",  "prefix", "batch",   "depth",     "chunked",
                                              "paging", "peer",   "kernels", "perplexity"};

TEST(Bench, EveryBenchmarkExplainsItselfWithExamples) {
  const cli::Captured help = cli::run_captured({"bench", "--help"});
  EXPECT_EQ(help.exit_status, 0);
  for (const std::string& benchmark : kBenchmarks) {
    EXPECT_THAT(help.out, HasSubstr(benchmark));
    const cli::Captured own = cli::run_captured({"bench", benchmark, "--help"});
    EXPECT_EQ(own.exit_status, 0);
    for (const std::string& part :
         {"Examples:\n  pagoda bench " + benchmark, std::string("--threads"),
          std::string("--kv-cache-dtype"), std::string("--json"), std::string(" is PAGODA_")}) {
      EXPECT_THAT(own.out, HasSubstr(part)) << benchmark;
    }
  }
}

TEST(Bench, AReportCarriesItsMachineItsCommandAndItsSettings) {
  const std::vector<std::string> flags = {"--prompt-tokens",  "8",   "--new-tokens", "4",
                                          "--repeats",        "1",   "--threads",    "1",
                                          "--kv-cache-dtype", "fp32"};
  const nlohmann::json json = bench_json("cache", flags);
  for (const char* const field : {"cpu", "architecture", "kernels", "build"}) {
    EXPECT_NE(json["machine"].value(field, ""), "") << field;
  }
  EXPECT_GE(json["machine"]["cores"], 1);
  const std::string typed =
      "pagoda bench cache " + story_model() +
      " --prompt-tokens 8 --new-tokens 4 --repeats 1 --threads 1 --kv-cache-dtype fp32";
  EXPECT_EQ(json["command"], typed + " --json");
  EXPECT_EQ(json["settings"]["model"], "stories260K.gguf");
  EXPECT_EQ(json["settings"]["threads"], 1);
  EXPECT_EQ(json["settings"]["kv_cache_dtype"], "fp32");

  const cli::Captured table = run_bench("cache", flags);
  EXPECT_THAT(table.out, StartsWith("command   " + typed + "\nmachine   "));
  EXPECT_THAT(table.out, HasSubstr(json["machine"]["cpu"].get<std::string>()));
  EXPECT_THAT(table.out, HasSubstr("\nKV cache  seconds"));
}

TEST(Bench, FlagsBelowACommandHaveEnvironmentVariablesToo) {
  setenv("PAGODA_PROMPT_TOKENS", "9", 1);
  const nlohmann::json json = bench_json("cache", {"--new-tokens", "2", "--repeats", "1"});
  unsetenv("PAGODA_PROMPT_TOKENS");
  EXPECT_EQ(json["settings"]["prompt_tokens"], 9);
}

TEST(Bench, AContextTooSmallIsRefusedWithBothNumbers) {
  const struct {
    const char* benchmark;
    std::vector<std::string> flags;
    const char* tokens;
  } cases[] = {
      {"cache", {"--prompt-tokens", "500", "--new-tokens", "13"}, "513"},
      {"prefix", {"--system-tokens", "490", "--question-tokens", "9", "--new-tokens", "14"}, "513"},
      {"batch", {"--prompt-tokens", "500", "--new-tokens", "13"}, "513"},
      {"depth", {"--depths", "0,500", "--new-tokens", "13"}, "513"},
      {"chunked", {}, "8001"},
      {"paging", {"--prompt-tokens-max", "500", "--new-tokens", "13"}, "513"},
      {"peer", {"--llama-bench", "/bin/false", "--works", "prefill"}, "513"},
  };
  for (const auto& refused : cases) {
    const cli::Captured captured = run_bench(refused.benchmark, refused.flags);
    EXPECT_EQ(captured.exit_status, 1) << refused.benchmark;
    EXPECT_THAT(captured.err, HasSubstr(std::string("make ") + refused.tokens + " tokens"));
    EXPECT_THAT(captured.err, HasSubstr("the context holds 512"));
    EXPECT_EQ(captured.out, "");
  }
}

TEST(Bench, BadOptionsAreRefusedByName) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"cache", {"--new-tokens", "0"}},
      {"cache", {"--repeats", "0"}},
      {"cache", {"--kv-cache-dtype", "fp1"}},
      {"cache", {"--threads", "0"}},
      {"cache", {"--toy"}},  // beside a model
      {"prefix", {"--questions", "none"}},
      {"batch", {"--batch-sizes", "1,0"}},
      {"batch", {"--max-num-batched-tokens", "8", "--batch-sizes", "9"}},
      {"depth", {"--depths", "0,-1"}},
      {"peer", {"--llama-bench", "/bin/false", "--works", "sleep"}},
      {"chunked", {"--max-num-batched-tokens", "100", "--prompt-tokens", "100"}},
      {"chunked", {"--streams", "0"}},
      {"paging", {"--kv-cache-memory-bytes", "much"}},
      {"paging", {"--prompt-tokens-min", "9", "--prompt-tokens-max", "8"}},
      {"paging", {"--max-num-seqs", "600", "--max-num-batched-tokens", "599"}}};
  for (const auto& [benchmark, flags] : cases) {
    const cli::Captured captured = run_bench(benchmark, flags);
    EXPECT_EQ(captured.exit_status, 2) << benchmark << ' ' << flags.front();
    EXPECT_THAT(captured.err, StartsWith("error: "));
    bool named = false;
    for (const std::string& flag : flags) {
      named = named || (flag.starts_with("--") && captured.err.find(flag) != std::string::npos);
    }
    EXPECT_TRUE(named) << captured.err;
    EXPECT_EQ(captured.out, "");
  }
}

TEST(Bench, AModelThatIsNotThereIsNamed) {
  const cli::Captured captured = cli::run_captured({"bench", "prefix", "/no/such/model.gguf"});
  EXPECT_EQ(captured.exit_status, 1);
  EXPECT_THAT(captured.err, HasSubstr("/no/such/model.gguf"));
}

// Presses Ctrl-C as soon as somebody listens.
void interrupt_when_heard() {
  struct sigaction now = {};
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    sigaction(SIGINT, nullptr, &now);
  } while (now.sa_handler == SIG_DFL);
  raise(SIGINT);
}

TEST(Bench, CtrlCStopsWithoutAReport) {
  for (const char* const benchmark : {"cache", "batch"}) {
    std::thread presser(interrupt_when_heard);
    const cli::Captured captured = run_bench(
        benchmark, {"--prompt-tokens", "300", "--new-tokens", "200", "--repeats", "1000"});
    presser.join();
    EXPECT_EQ(captured.exit_status, 130) << benchmark;
    EXPECT_THAT(captured.err, HasSubstr("interrupted"));
    EXPECT_EQ(captured.out, "");
  }
}

}  // namespace
}  // namespace pagoda::bench
