// The flags of pagoda bench prefix.
#include "bench/benchmarks.h"
#include "cli/bench_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchPrefixExamples =
    "Examples:\n"
    "  pagoda bench prefix\n"
    "  pagoda bench prefix model.gguf --questions 5 --system-tokens 200 --json\n"
    "Questions are asked one after the other: first for one token each, then for --new-tokens, "
    "with prefix caching off and then on, after another question has left the system prompt in the "
    "cache. Both sides must give the same tokens. speedup is the ratio of the sums of TTFT.";

}  // namespace

void add_bench_prefix(const BenchCommand& bench) {
  const CommandSpec command =
      bench.app.add_subcommand("prefix", "questions behind one system prompt, cached and not");
  const auto options = std::make_shared<bench::BenchPrefixOptions>();
  add_engine_options(command, *options);
  add_repeats_option(command, *options);
  add_batched_tokens_option(command, *options);
  add_count_option(command, "--questions", options->questions, "questions asked");
  add_count_option(command, "--system-tokens", options->system_tokens,
                   "tokens of the system prompt that they share");
  add_count_option(command, "--question-tokens", options->question_tokens,
                   "tokens of each question");
  add_count_option(command, "-n,--new-tokens", options->new_tokens, "new tokens of each question");
  command.footer(kBenchPrefixExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return bench::bench_prefix(*options, run);
  });
}

}  // namespace pagoda::cli
