// The benchmarks of pagoda bench: what each can be told, and the function that measures it. An
// error kInvalidArgument says that the options make no sense together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench_run.h"
#include "bench/operation_times.h"
#include "bench/tiers_plain.h"
#include "bench/work.h"
#include "loadgen/agents.h"
#include "speculate/options.h"

namespace pagoda::bench {

// One sequence with the KV cache, and the same computed anew for every token.
struct BenchCacheOptions : BenchOptions {
  BenchCacheOptions() { repeats = 5; }
  bool toy = false;
  std::uint32_t hidden_size = 128;  // of a toy; of `toy` a multiple of 32
  std::uint64_t seed = 0;           // of a toy's random numbers
  std::uint32_t prompt_tokens = 256;
  std::uint32_t new_tokens = 128;
};
Result<terminal::BenchReport> bench_cache(const BenchCacheOptions& options, const BenchRun& run);

// Questions behind one system prompt, cached and not.
struct BenchPrefixOptions : BenchOptions {
  std::uint32_t questions = 20;
  std::uint32_t system_tokens = 1000;
  std::uint32_t question_tokens = 16;
  std::uint32_t new_tokens = 64;
};
Result<terminal::BenchReport> bench_prefix(const BenchPrefixOptions& options, const BenchRun& run);

// Tokens per second over batch sizes.
struct BenchBatchOptions : BenchOptions {
  BenchBatchOptions() { repeats = 3; }
  std::vector<std::uint32_t> batch_sizes = {1, 2, 4, 8, 16, 32, 64};
  std::uint32_t prompt_tokens = 128;
  std::uint32_t new_tokens = 32;
  std::string plot;  // SVG file; empty: none
  speculate::SpeculationOptions speculation = {};
};
Result<terminal::BenchReport> bench_batch(const BenchBatchOptions& options, const BenchRun& run);

// Tokens per second over context depths.
struct BenchDepthOptions : BenchOptions {
  BenchDepthOptions() { repeats = 3; }
  std::vector<std::uint32_t> depths;  // empty: depths_to(the context)
  std::uint32_t new_tokens = 32;
  std::string plot;  // SVG file; empty: none
};
Result<terminal::BenchReport> bench_depth(const BenchDepthOptions& options, const BenchRun& run);

// ITL while a long prompt arrives, in chunks and whole.
struct BenchChunkedOptions : BenchOptions {
  BenchChunkedOptions() { batched_tokens_max = 256; }
  std::uint32_t prompt_tokens = 8000;
  std::uint32_t streams = 4;
  std::uint32_t quiet_tokens = 32;
};
Result<terminal::BenchReport> bench_chunked(const BenchChunkedOptions& options,
                                            const BenchRun& run);

// Draft tokens by kind, beside the same requests without them.
struct BenchSpeculateOptions : BenchOptions {
  BenchSpeculateOptions() { repeats = 3; }
  std::uint32_t new_tokens = 512;
  std::uint32_t lines = 24;  // of the text that is copied
  std::uint32_t recorded_drafts = 4;
  double recorded_wrong = 0.3;
  speculate::SpeculationOptions speculation = {};  // its methods are not used
};
Result<terminal::BenchReport> bench_speculate(const BenchSpeculateOptions& options,
                                              const BenchRun& run);

// Compares how many sequences fit into the same memory, in pages and in slabs.
struct BenchPagingOptions : BenchOptions {
  std::uint32_t sequences_max = 256;
  std::uint32_t requests = 96;
  std::uint32_t prompt_tokens_min = 16;
  std::uint32_t prompt_tokens_max = 256;
  std::uint32_t new_tokens = 32;
  std::uint32_t block_size = 16;
  std::uint64_t context_tokens = 0;       // 0: the model's, at most kContextDefault
  std::optional<std::uint64_t> kv_bytes;  // unset: kSlabsDefault slabs
};
Result<terminal::BenchReport> bench_paging(const BenchPagingOptions& options, const BenchRun& run);

// The same work by this program and by llama.cpp, alternately.
struct BenchPeerOptions : BenchOptions {
  BenchPeerOptions() {
    repeats = 3;
    for (const Work& work : compared_works()) works.emplace_back(work.name);
  }
  std::vector<std::string> llama_benches;
  std::vector<std::string> peer_models;  // beside the model itself
  std::vector<std::string> works;
  // Rounds go on, `repeats` at least and `repeats_max` at most, until the ratio's 95 % interval is
  // at most this share of the ratio wide.
  double precision = 0.05;
  std::uint32_t repeats_max = 20;
  bool fastest_cores = false;
};
Result<terminal::BenchReport> bench_peer(const BenchPeerOptions& options, const BenchRun& run);

// Prefill and decode of a named shape on a GPU, with random weights.
struct BenchGpuOptions : BenchOptions {
  BenchGpuOptions() {
    repeats = 3;
    batched_tokens_max = 8192;
  }
  std::string shape = "llama-3-8b";
  std::string weights = "bf16";
  std::vector<std::uint32_t> batch_sizes = {1, 8, 32, 64, 128, 256};
  std::vector<std::uint32_t> depths = {0, 4096, 32000};
  std::vector<std::uint32_t> prefills = {4096, 32000};
  std::uint32_t prompt_tokens = 512;
  std::uint32_t new_tokens = 128;
  // Answers that were recorded are drafted again, each token wrong with this probability, in
  // batches of these sizes.
  std::vector<std::uint32_t> draft_batch_sizes = {};
  std::uint32_t draft_tokens = 8;  // at most, of a draft
  double draft_wrong = 0.2;
  bool no_graphs = false;
};
Result<terminal::BenchReport> bench_gpu(const BenchGpuOptions& options, const BenchRun& run);

// Each operation of a model beside what this machine gives.
struct BenchKernelsOptions : BenchOptions {
  std::string shape = std::string(model_shapes().front().name);
  std::string type;  // empty: those of the shape
  OperationOptions operations;
};
// Returns the values that `type` may have, sorted.
std::vector<std::string> readable_weight_types();
Result<terminal::BenchReport> bench_kernels(const BenchKernelsOptions& options,
                                            const BenchRun& run);

// Perplexity of the model on a text.
struct BenchPerplexityOptions : BenchOptions {
  std::string file;
  std::uint32_t context_tokens = 512;
  std::uint32_t windows_max = 40;
};
Result<terminal::BenchReport> bench_perplexity(const BenchPerplexityOptions& options,
                                               const BenchRun& run);

// TTFT of agents that share a small cache, with session keys and without.
struct BenchAgentsOptions : BenchOptions {
  BenchAgentsOptions() {
    threads = 0;  // the servers' default
    repeats = 2;
  }
  loadgen::AgentsOptions agents;
  double kv_factor = 1.5;    // size of the KV cache, in prompts of the main agent
  std::string url;           // of a server that runs already; empty: servers are started
  std::string served_model;  // empty: the server's first
  std::string llama_server;  // empty: not compared
  std::string llama_model;   // empty: the same model
  std::string llama_flags;
};
Result<terminal::BenchReport> bench_agents(const BenchAgentsOptions& options, const BenchRun& run);

// How long grammars take to be ready, and masks over a vocabulary: of a model, or of a tekken.json.
struct BenchStructuredOptions : BenchOptions {
  BenchStructuredOptions() { repeats = 20; }
};
Result<terminal::BenchReport> bench_structured(const BenchStructuredOptions& options,
                                               const BenchRun& run);

// How fast each tier takes pages and gives them back.
struct BenchTiersOptions : BenchOptions {
  std::string folder = ".";
  std::string remote;  // empty: none
  std::uint64_t bytes = std::uint64_t{1} << 30;
  std::uint64_t page_bytes = 368640;  // SmolLM2-135M: 16 tokens of 30 layers in 16 bits
  std::uint32_t block_tokens = 16;

  std::uint64_t pages() const { return std::max<std::uint64_t>(bytes / page_bytes, 1); }
  PlainPages plain() const { return {pages(), page_bytes}; }
};
Result<terminal::BenchReport> bench_tiers(const BenchTiersOptions& options, const BenchRun& run);

}  // namespace pagoda::bench
