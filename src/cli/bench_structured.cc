// The flags of pagoda bench structured.
#include "bench/benchmarks.h"
#include "cli/bench_flags.h"
#include "cli/model_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchStructuredExamples =
    "Examples:\n"
    "  pagoda bench structured\n"
    "  pagoda bench structured gemma.gguf --repeats 50 --json\n"
    "  pagoda bench structured tekken.json\n"
    "One core. Each grammar is compiled (ready) and an answer is written under it; before each of "
    "its tokens the mask over the vocabulary is computed. A model also "
    "decodes in a batch of 16 with a grammar on none, one and all of its sequences; "
    "tekken.json is that of PyPI's mistral-common.";

}  // namespace

void add_bench_structured(const BenchCommand& bench) {
  const CommandSpec command = bench.app.add_subcommand(
      "structured", "structured output: grammars ready, masks over the vocabulary");
  const auto options = std::make_shared<bench::BenchStructuredOptions>();
  add_model_option(command, options->model);
  add_repeats_option(command, *options);
  command.add_flag("--json", options->json, "one JSON object on stdout instead of a table");
  command.footer(kBenchStructuredExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return bench::bench_structured(*options, run);
  });
}

}  // namespace pagoda::cli
