// The flags of pagoda bench paging.
#include "bench/benchmarks.h"
#include "cli/bench_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchPagingExamples =
    "Examples:\n"
    "  pagoda bench paging\n"
    "  pagoda bench paging --max-model-len 8192 --kv-cache-memory-bytes 1GiB\n"
    "  pagoda bench paging model.gguf --requests 12 --prompt-tokens-max 64 --json\n"
    "The same requests, all submitted at once, with the same memory for keys and values: first one "
    "slab of the longest context for each sequence, then pages of --block-size tokens. Prefix "
    "caching is off. Bytes a sequence are what running sequences hold, over all steps.";

}  // namespace

void add_bench_paging(const BenchCommand& bench) {
  const CommandSpec command = bench.app.add_subcommand(
      "paging", "memory held and sequences at once: pages against slabs of the longest context");
  const auto options = std::make_shared<bench::BenchPagingOptions>();
  add_model_options(command, *options);
  add_batched_tokens_option(command, *options);
  add_count_option(command, "--max-num-seqs", options->sequences_max,
                   "sequences that run at once, at most 65536")
      .range(1u, 1u << 16);
  add_count_option(command, "--requests", options->requests, "requests, submitted at once");
  add_count_option(command, "--prompt-tokens-min", options->prompt_tokens_min,
                   "tokens of the shortest prompt");
  add_count_option(command, "--prompt-tokens-max", options->prompt_tokens_max,
                   "tokens of the longest prompt");
  add_count_option(command, "-n,--new-tokens", options->new_tokens, "new tokens of each sequence",
                   2);
  add_count_option(command, "--block-size", options->block_size, "tokens in a page, at most 4096")
      .range(1u, 4096u);
  command
      .add_option("-c,--max-model-len", options->context_tokens,
                  "longest context, the length of a slab (default: the model's, at most 2048)")
      .token_count(2, std::uint64_t{1} << 20);
  command.add_byte_size("--kv-cache-memory-bytes", options->kv_bytes,
                        "memory for keys and values, such as 512MiB (default: four slabs)");
  command.footer(kBenchPagingExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return bench::bench_paging(*options, run);
  });
}

}  // namespace pagoda::cli
