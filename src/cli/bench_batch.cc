// The flags of pagoda bench batch.
#include "bench/benchmarks.h"
#include "cli/bench_flags.h"
#include "cli/speculation_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchBatchExamples =
    "Examples:\n"
    "  pagoda bench batch\n"
    "  pagoda bench batch model.gguf --batch-sizes 1,8 --prompt-tokens 512 --json\n"
    "Only steps in which all sequences decode are measured. GB/s = (weight bytes + batch size x KV "
    "bytes of prompt + half the output) / step time: every weight matrix counts once a step, keys "
    "and values once for each sequence. With --speculative-config a step may give a sequence "
    "several tokens; every measurement after the first asks what was asked before, which tree "
    "finds.";

}  // namespace

void add_bench_batch(const BenchCommand& bench) {
  const CommandSpec command =
      bench.app.add_subcommand("batch", "tokens per second over batch sizes");
  const auto options = std::make_shared<bench::BenchBatchOptions>();
  add_engine_options(command, *options);
  add_repeats_option(command, *options);
  add_batched_tokens_option(command, *options);
  command
      .add_option("--batch-sizes", options->batch_sizes,
                  "sequences that decode together, 1 to 512, with commas (default "
                  "1,2,4,8,16,32,64)")
      .delimiter(',')
      .range(1u, 512u);
  add_count_option(command, "--prompt-tokens", options->prompt_tokens,
                   "tokens of each prompt: the depth at which decoding begins");
  add_count_option(command, "-n,--new-tokens", options->new_tokens, "new tokens of each sequence",
                   2);
  command.add_option("--plot", options->plot, "draw tokens/s over batch sizes into this SVG file")
      .type_name("FILE");
  add_speculation_options(command, options->speculation);
  command.footer(kBenchBatchExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return bench::bench_batch(*options, run);
  });
}

}  // namespace pagoda::cli
