// The flags of pagoda bench cache.
#include <cstdlib>

#include "bench/benchmarks.h"
#include "bench/tutorial_toy.h"
#include "cli/bench_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchCacheExamples =
    "Examples:\n"
    "  pagoda bench cache\n"
    "  pagoda bench cache --toy\n"
    "  pagoda bench cache --tutorial\n"
    "  pagoda bench cache model.gguf --prompt-tokens 64 --new-tokens 32 --repeats 3 --json\n"
    "Without the cache every token computes the whole sequence again. Both sides must give the "
    "same "
    "tokens. Times are medians from prompt to last token; speedup is their ratio.";

struct CacheFlags : bench::BenchCacheOptions {
  bool tutorial = false;
};

}  // namespace

void add_bench_cache(const BenchCommand& bench) {
  const CommandSpec command =
      bench.app.add_subcommand("cache", "one sequence with and without the KV cache");
  const auto options = std::make_shared<CacheFlags>();
  add_model_options(command, *options);
  add_repeats_option(command, *options);
  add_batched_tokens_option(command, *options);
  const Flag toy =
      command.add_flag("--toy", options->toy, "one attention layer with random weights, no model");
  toy.excludes("MODEL");
  command
      .add_option("--hidden-size", options->hidden_size,
                  "width of that layer, a multiple of 32 (default 128)")
      .range(32u, 8192u)
      .check([](const std::string& text) {
        return std::strtoul(text.c_str(), nullptr, 10) % 32 == 0 ? "" : "is no multiple of 32";
      })
      .needs(toy);
  command
      .add_flag("--tutorial", options->tutorial,
                "the toy of tutorials itself: one head, projections of Q, K and V alone, given "
                "random vectors, fp32, one thread; times are means")
      .excludes("MODEL")
      .excludes(toy);
  add_count_option(command, "--prompt-tokens,--prompt-len", options->prompt_tokens,
                   "tokens of the prompt");
  add_count_option(command, "-n,--new-tokens", options->new_tokens, "new tokens");
  command.flag("--repeats")
      .description(
          "measurements of each side; without the cache as many of them as fit in 60 s, "
          "at least one (default 5)");
  command.footer(kBenchCacheExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return options->tutorial ? bench::bench_tutorial(*options, run)
                             : bench::bench_cache(*options, run);
  });
}

}  // namespace pagoda::cli
