// The flags of pagoda bench speculate.
#include "bench/benchmarks.h"
#include "cli/bench_flags.h"
#include "cli/speculation_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchSpeculateExamples =
    "Examples:\n"
    "  pagoda bench speculate\n"
    "  pagoda bench speculate model.gguf -n 256 --repeats 5 --json\n"
    "  pagoda bench speculate model.gguf --model-draft smaller.gguf\n"
    "Every kind of draft is measured in turn with the same request without drafts, in one engine, "
    "and the answers must be equal. The methods of --speculative-config are not used, its lengths "
    "are.";

}  // namespace

void add_bench_speculate(const BenchCommand& bench) {
  const CommandSpec command =
      bench.app.add_subcommand("speculate", "draft tokens by kind: accepted, speed, equal answers");
  const auto options = std::make_shared<bench::BenchSpeculateOptions>();
  add_engine_options(command, *options);
  add_repeats_option(command, *options);
  add_batched_tokens_option(command, *options);
  add_speculation_options(command, options->speculation);
  add_count_option(command, "-n,--new-tokens", options->new_tokens, "new tokens of each answer", 2);
  add_count_option(command, "--lines", options->lines, "lines of the text that is copied");
  add_count_option(command, "--recorded-tokens", options->recorded_drafts,
                   "tokens of each recorded draft");
  command
      .add_option("--recorded-wrong", options->recorded_wrong,
                  "probability that a token of a recorded draft is wrong (default 0.3)")
      .range(0.0, 1.0);
  command.footer(kBenchSpeculateExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return bench::bench_speculate(*options, run);
  });
}

}  // namespace pagoda::cli
