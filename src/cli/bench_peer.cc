// The flags of pagoda bench peer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/benchmarks.h"
#include "cli/bench_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchPeerExamples =
    "Examples:\n"
    "  pagoda bench peer --llama-bench ~/llama.cpp/build/bin/llama-bench\n"
    "  pagoda bench peer --llama-bench amx/llama-bench avx512/llama-bench "
    "--peer-model model.Q4_0.gguf --works prefill,decode --json\n"
    "  pagoda bench peer model.gguf --device cuda --gpu-memory-utilization 0.4 --llama-bench "
    "cuda/llama-bench --max-num-batched-tokens 2048 --works decode,batch,prefill-long\n"
    "Both programs alternate at each work, in rounds, until the 95 % interval of their ratio is "
    "narrow enough (--precision) or --repeats-max rounds have passed. llama.cpp counts with its "
    "best over all programs and models, the model itself included; what is far behind its best "
    "after one round is not measured again. llama-batched-bench must stand beside llama-bench for "
    "work of "
    "several sequences. A build that crashes is named and left out. llama.cpp computes as many "
    "tokens in one step as we do (-b and -ub). On a GPU both programs hold the model at the same "
    "time: leave memory for the other.";

}  // namespace

void add_bench_peer(const BenchCommand& bench) {
  const CommandSpec command =
      bench.app.add_subcommand("peer", "the same work by this program and by llama.cpp");
  const auto options = std::make_shared<bench::BenchPeerOptions>();
  add_engine_options(command, *options);
  command
      .add_option("--repeats", options->repeats,
                  fmt::format("rounds at least (default {})", options->repeats))
      .range(1u, 1000u);
  command
      .add_option("--repeats-max", options->repeats_max,
                  fmt::format("rounds at most (default {})", options->repeats_max))
      .range(1u, 1000u);
  command
      .add_option("--precision", options->precision,
                  fmt::format("how wide a ratio's 95 % interval may be, as a share of the ratio "
                              "(default {})",
                              options->precision))
      .range(0.001, 10.0);
  add_batched_tokens_option(command, *options);
  command
      .add_option("--llama-bench", options->llama_benches,
                  "llama.cpp's benchmark program, one or more builds of it")
      .required();
  command.add_option("--peer-model", options->peer_models,
                     "model files llama.cpp may run instead of MODEL, one or more");
  command
      .add_option("--works", options->works,
                  fmt::format("what is compared, with commas (default all: {})",
                              fmt::join(options->works, ",")))
      .delimiter(',')
      .among(options->works);
  command.add_flag(
      "--fastest-cores", options->fastest_cores,
      "before each measurement, keep both programs to the cores that are fastest then");
  command.footer(kBenchPeerExamples);
  set_benchmark(command, bench, options,
                [options](const bench::BenchRun& run) { return bench::bench_peer(*options, run); });
}

}  // namespace pagoda::cli
