// The flags of pagoda bench kernels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/benchmarks.h"
#include "bench/model_shape.h"
#include "cli/bench_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchKernelsExamples =
    "Examples:\n"
    "  pagoda bench kernels\n"
    "  pagoda bench kernels --shape gemma-2b --type Q8_0 --rows 1,16 --depths 4096 --json\n"
    "At the start, after each operation and at the end it is measured how fast this machine reads "
    "memory and multiplies. % of machine = the time that its bytes or its multiply-adds need at "
    "that speed, whichever is longer, over the time taken; bytes come from a buffer as large as "
    "what the operation cycles over. A run is valid only when the machine's speeds stayed within "
    "20 %.";

}  // namespace

void add_bench_kernels(const BenchCommand& bench) {
  const CommandSpec command = bench.app.add_subcommand(
      "kernels", "each operation of a model against this machine's limits (roofline)");
  const auto options = std::make_shared<bench::BenchKernelsOptions>();
  add_machine_options(command, *options);
  std::vector<std::string> names;
  for (const bench::ModelShape& shape : bench::model_shapes()) names.emplace_back(shape.name);
  command
      .add_option("--shape", options->shape,
                  fmt::format("sizes of {} (default {})", fmt::join(names, ", "), options->shape))
      .among(names);
  command
      .add_option("--type", options->type, "type of all weights (default: as usual for the shape)")
      .among(bench::readable_weight_types());
  command
      .add_option("--rows", options->operations.rows,
                  "tokens at once, 1 to 4096, with commas (default 1,16,512)")
      .delimiter(',')
      .range(1u, 4096u);
  command
      .add_option("--depths", options->operations.depths,
                  "tokens before those of attention, with commas (default 1024,4096)")
      .delimiter(',')
      .range(0u, 1u << 17);
  command
      .add_option("--seconds", options->operations.seconds,
                  "time spent on each operation, 0.001 to 60 (default 0.2)")
      .range(0.001, 60.0);
  command.footer(kBenchKernelsExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return bench::bench_kernels(*options, run);
  });
}

}  // namespace pagoda::cli
