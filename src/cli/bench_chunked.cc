// The flags of pagoda bench chunked.
#include "bench/benchmarks.h"
#include "cli/bench_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchChunkedExamples =
    "Examples:\n"
    "  pagoda bench chunked\n"
    "  pagoda bench chunked --max-num-batched-tokens 128 --streams 8\n"
    "  pagoda bench chunked model.gguf --prompt-tokens 300 --max-num-batched-tokens 64 --json\n"
    "ITL of running streams, from the moment a long prompt arrives to its first "
    "token; first without such a prompt, then with the prompt in chunks and whole.";

}  // namespace

void add_bench_chunked(const BenchCommand& bench) {
  const CommandSpec command =
      bench.app.add_subcommand("chunked", "ITL while a long prompt arrives, in chunks and whole");
  const auto options = std::make_shared<bench::BenchChunkedOptions>();
  add_engine_options(command, *options);
  add_repeats_option(command, *options);
  add_batched_tokens_option(command, *options);
  add_count_option(command, "--prompt-tokens", options->prompt_tokens,
                   "tokens of the long prompt, below 65000")
      .range(2u, 65000u);
  add_count_option(command, "--streams", options->streams,
                   "sequences that decode meanwhile, to 256")
      .range(1u, 256u);
  add_count_option(command, "--quiet-tokens", options->quiet_tokens,
                   "tokens of each stream before the prompt arrives", 2);
  command.footer(kBenchChunkedExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return bench::bench_chunked(*options, run);
  });
}

}  // namespace pagoda::cli
