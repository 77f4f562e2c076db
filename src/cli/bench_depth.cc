// The flags of pagoda bench depth.
#include "bench/benchmarks.h"
#include "cli/bench_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchDepthExamples =
    "Examples:\n"
    "  pagoda bench depth\n"
    "  pagoda bench depth model.gguf --depths 0,1000,4000 --new-tokens 16 --json\n"
    "One sequence decodes behind prompts of each depth. GB/s = (weight bytes + KV bytes of prompt "
    "+ "
    "half the output) / step time: every weight matrix counts once a step.";

}  // namespace

void add_bench_depth(const BenchCommand& bench) {
  const CommandSpec command =
      bench.app.add_subcommand("depth", "tokens per second over context depths");
  const auto options = std::make_shared<bench::BenchDepthOptions>();
  add_engine_options(command, *options);
  add_repeats_option(command, *options);
  add_batched_tokens_option(command, *options);
  command
      .add_option(
          "--depths", options->depths,
          "context tokens before decoding, with commas (default 0, 256, 512, … to the deepest "
          "at which --new-tokens fit)")
      .delimiter(',')
      .range(0u, 1u << 20);
  add_count_option(command, "-n,--new-tokens", options->new_tokens, "new tokens of each sequence",
                   2);
  command.add_option("--plot", options->plot, "draw tokens/s over depths into this SVG file")
      .type_name("FILE");
  command.footer(kBenchDepthExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return bench::bench_depth(*options, run);
  });
}

}  // namespace pagoda::cli
