// The flags of pagoda bench cache.
#include <fmt/format.h>

#include <utility>

#include "bench/benchmarks.h"
#include "bench/tutorial_toy.h"
#include "cli/bench_flags.h"
#include "cli/options.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchCacheExamples =
    "Examples:\n"
    "  pagoda bench cache\n"
    "  pagoda bench cache --toy\n"
    "  pagoda bench cache --tutorial\n"
    "  pagoda bench cache --tutorial --prefix-len 5 --hidden-size 8\n"
    "  pagoda bench cache model.gguf --prompt-tokens 64 --new-tokens 32 --repeats 3 --json\n"
    "Without the cache every token computes the whole sequence again. Both sides must give the "
    "same "
    "tokens. Times are medians from prompt to last token; speedup is their ratio.";

constexpr std::uint32_t kToyWidthUnit = 32;  // of --toy, whose four heads are of a multiple of 8
constexpr std::uint32_t kSequenceTokensMax = 1u << 20;

struct CacheFlags : bench::BenchCacheOptions {
  bool tutorial = false;
  std::uint32_t sequence_tokens = 0;  // of the tutorials' toy
  std::uint32_t prefix_tokens = 0;
};

// The flags whose meaning depends on others.
struct CacheFlagSet {
  Flag hidden_size;
  Flag seed;
  Flag sequence;
  Flag prefix;
  Flag new_tokens;
};

CacheFlagSet add_toy_flags(const CommandSpec& command, CacheFlags& options) {
  const Flag toy =
      command.add_flag("--toy", options.toy, "one attention layer with random weights, no model");
  toy.excludes("MODEL");
  command
      .add_flag("--tutorial", options.tutorial,
                "the toy of tutorials itself: one head, projections of Q, K and V alone, given "
                "random vectors, fp32, one thread; times are means")
      .excludes("MODEL")
      .excludes(toy);
  const Flag hidden_size =
      command.add_option("--hidden-size", options.hidden_size,
                         "width of a toy's layer, of --toy a multiple of 32 (default 128)");
  hidden_size.range(1u, 8192u);
  const Flag seed = command.add_option("--seed", options.seed,
                                       "seed of a toy's random weights and vectors (default 0)");
  add_count_option(command, "--prompt-tokens,--prompt-len", options.prompt_tokens,
                   "tokens of the prompt");
  const Flag new_tokens =
      add_count_option(command, "-n,--new-tokens", options.new_tokens, "new tokens");
  const Flag prefix = command.add_option(
      "--prefix-len", options.prefix_tokens,
      "of --tutorial: vectors of the prefix, before one new vector unless --new-tokens says more");
  prefix.range(1u, kSequenceTokensMax).excludes("--prompt-tokens");
  const Flag sequence = command.add_option("--seq-len", options.sequence_tokens,
                                           "of --tutorial: vectors in all, the last of them new "
                                           "unless --new-tokens says more");
  sequence.range(2u, kSequenceTokensMax).excludes("--prompt-tokens").excludes(prefix);
  return {hidden_size, seed, sequence, prefix, new_tokens};
}

// Gives the tutorials' flags their meaning, and refuses what does not go together.
Status understand(CacheFlags& options, const CacheFlagSet& given) {
  const bool is_toy = options.toy || options.tutorial;
  for (const auto& [flag, name] :
       {std::pair{given.hidden_size, "--hidden-size"}, std::pair{given.seed, "--seed"}}) {
    if (flag.count() > 0 && !is_toy) {
      return invalid(fmt::format("{}: only with --toy or --tutorial", name));
    }
  }
  if (options.toy && options.hidden_size % kToyWidthUnit != 0) {
    return invalid("--hidden-size: is no multiple of 32, which --toy needs; --tutorial takes any");
  }
  if (given.sequence.count() + given.prefix.count() == 0) return ok_status();
  if (!options.tutorial) {
    return invalid(fmt::format("{}: only with --tutorial; --prompt-tokens is for all",
                               given.prefix.count() > 0 ? "--prefix-len" : "--seq-len"));
  }
  if (given.new_tokens.count() == 0) options.new_tokens = 1;
  if (given.prefix.count() > 0) {
    options.prompt_tokens = options.prefix_tokens;
  } else if (options.sequence_tokens <= options.new_tokens) {
    return invalid(fmt::format("--seq-len: {} holds no more than --new-tokens {}",
                               options.sequence_tokens, options.new_tokens));
  } else {
    options.prompt_tokens = options.sequence_tokens - options.new_tokens;
  }
  return ok_status();
}

}  // namespace

void add_bench_cache(const BenchCommand& bench) {
  const CommandSpec command =
      bench.app.add_subcommand("cache", "one sequence with and without the KV cache");
  const auto options = std::make_shared<CacheFlags>();
  add_model_options(command, *options);
  add_repeats_option(command, *options);
  add_batched_tokens_option(command, *options);
  const CacheFlagSet given = add_toy_flags(command, *options);
  command.flag("--repeats")
      .description(
          "measurements of each side; without the cache as many of them as fit in 60 s, "
          "at least one (default 5)");
  command.footer(kBenchCacheExamples);
  set_benchmark(command, bench, options,
                [options, given](const bench::BenchRun& run) -> Result<terminal::BenchReport> {
                  RETURN_IF_ERROR(understand(*options, given));
                  return options->tutorial ? bench::bench_tutorial(*options, run)
                                           : bench::bench_cache(*options, run);
                });
}

}  // namespace pagoda::cli
