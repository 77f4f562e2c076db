// The flags of pagoda bench perplexity.
#include "bench/benchmarks.h"
#include "cli/bench_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchPerplexityExamples =
    "Examples:\n"
    "  pagoda bench perplexity --file wikitext-2-test.txt\n"
    "  pagoda bench perplexity --file wikitext-2-test.txt --device cuda\n"
    "  PAGODA_KERNELS=ref pagoda bench perplexity model.gguf --file text.txt --windows 10\n"
    "Windows of 512 tokens, of which the second half is scored: llama.cpp's method, so figures can "
    "be compared with its own.";

}  // namespace

void add_bench_perplexity(const BenchCommand& bench) {
  const CommandSpec command =
      bench.app.add_subcommand("perplexity", "perplexity of the model on a text");
  const auto options = std::make_shared<bench::BenchPerplexityOptions>();
  add_engine_options(command, *options);
  command.add_option("--file", options->file, "the text").required();
  add_count_option(command, "--context", options->context_tokens, "tokens of a window", 4);
  add_count_option(command, "--windows", options->windows_max, "windows to read at most");
  command.footer(kBenchPerplexityExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return bench::bench_perplexity(*options, run);
  });
}

}  // namespace pagoda::cli
