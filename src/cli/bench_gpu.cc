// The flags of pagoda bench gpu.
#include <fmt/format.h>

#include "app/random_shapes.h"
#include "bench/benchmarks.h"
#include "cli/bench_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchGpuExamples =
    "Examples:\n"
    "  pagoda bench gpu --json\n"
    "  pagoda bench gpu --random-weights llama-3.2-1b --weights q8_0 --batch-sizes 1,8\n"
    "  pagoda bench gpu --draft-batch-sizes 1,64,256 --draft-wrong 0.2\n"
    "Rows \"depth\" decode one sequence behind so many tokens, rows \"batch\" so many sequences "
    "behind\n--prompt-tokens each, and rows \"prefill\" compute one prompt. Rows \"plain\" and "
    "\"drafts\" decode\nthe same batch without and with draft tokens, in turn; the answers must be "
    "equal. ready_seconds is\nfrom nothing to a model that generates.";

}  // namespace

void add_bench_gpu(const BenchCommand& bench) {
  const CommandSpec command =
      bench.app.add_subcommand("gpu", "a named shape with random weights on a GPU");
  const auto options = std::make_shared<bench::BenchGpuOptions>();
  add_machine_options(command, *options);
  add_repeats_option(command, *options);
  add_batched_tokens_option(command, *options);
  command.add_option("--random-weights", options->shape,
                     fmt::format("{} (default llama-3-8b)", app::random_shape_names()));
  command.add_option("--weights", options->weights,
                     "bf16, q8_0, q4_0, q4_1, q4_k, q6_k or mxfp4 (default bf16)");
  const auto add_list = [&](const char* name, std::vector<std::uint32_t>& list, const char* what) {
    command.add_option(name, list, what).delimiter(',').range(0u, 1u << 20);
  };
  add_list("--batch-sizes", options->batch_sizes, "sequences that decode together, with commas");
  add_list("--depths", options->depths, "context tokens before one sequence decodes, with commas");
  add_list("--prefills", options->prefills, "lengths of prompts, with commas");
  add_count_option(command, "--prompt-tokens", options->prompt_tokens, "of each sequence");
  add_count_option(command, "-n,--new-tokens", options->new_tokens, "new tokens of each sequence",
                   2);
  add_list("--draft-batch-sizes", options->draft_batch_sizes,
           "sequences whose recorded answers are drafted again, with commas");
  add_count_option(command, "--draft-tokens", options->draft_tokens, "of a draft, at most");
  command
      .add_option("--draft-wrong", options->draft_wrong,
                  "probability that a token of a draft is wrong (default 0.2)")
      .range(0.0, 1.0);
  command.add_flag("--no-graphs", options->no_graphs, "launch every kernel by itself");
  command.footer(kBenchGpuExamples);
  set_benchmark(command, bench, options,
                [options](const bench::BenchRun& run) { return bench::bench_gpu(*options, run); });
}

}  // namespace pagoda::cli
