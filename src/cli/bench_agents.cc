// The flags of pagoda bench agents.
#include "bench/benchmarks.h"
#include "cli/bench_flags.h"
#include "cli/model_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchAgentsExamples =
    "Examples:\n"
    "  pagoda bench agents\n"
    "  pagoda bench agents --llama-server ~/llama.cpp/build/bin/llama-server -t 8\n"
    "  pagoda bench agents --model Qwen/Qwen3-8B-GGUF --main-tokens 28000 --sub-tokens 7000 "
    "--pause 5\n"
    "  pagoda bench agents --url http://127.0.0.1:8080 --turns 10 --json\n"
    "A main agent and sub-agents run side by side. Each turn has a tool's result, and a note that "
    "the next turn leaves out, as agents send reminders. The cache holds --kv-factor times the "
    "main "
    "agent's prompt, so that agents evict each other. Servers are started one after the other, "
    "with "
    "and without session keys, --repeats times each, every other round from the last to the first; "
    "TTFT is shown from turn 5 on, each turn's with --json. A llama-server that does not start or "
    "answer has a row that says why.";

void add_agents_options(const CommandSpec& command, bench::BenchAgentsOptions& options) {
  loadgen::AgentsOptions& agents = options.agents;
  add_model_option(command, options.model);
  add_count_option(command, "--main-tokens", agents.main_tokens,
                   "tokens of the main agent's system prompt");
  add_count_option(command, "--sub-tokens", agents.sub_tokens, "tokens of a sub-agent's");
  add_count_option(command, "--sub-agents", agents.sub_agents, "sub-agents", 0);
  add_count_option(command, "--turns", agents.turns, "turns of each agent");
  add_count_option(command, "--result-tokens", agents.result_tokens, "tokens of a tool's result");
  add_count_option(command, "--note-tokens", agents.note_tokens,
                   "tokens of the note in the last turn");
  add_count_option(command, "--output-tokens", agents.output_tokens, "tokens of an answer");
  command.add_option("--pause", agents.pause_s, "mean seconds that a tool takes (default 0.2)")
      .range(0.0, 3600.0);
  command.add_flag("--one-by-one", agents.one_by_one,
                   "one agent after the other, in an order drawn by the seed, without pauses: "
                   "counts are the same in every run");
  command
      .add_option("--kv-factor", options.kv_factor,
                  "size of the KV cache, in prompts of the main agent (default 1.5)")
      .range(1.0, 100.0);
  command.add_option("-t,--threads", options.threads, "threads of servers (default: theirs)")
      .range(1u, 1024u);
  command.add_option("--seed", agents.seed, "seed of texts and pauses (default 0)");
  command.add_option("--url", options.url,
                     "measure this OpenAI-compatible server alone, which runs already");
  command.add_option("--served-model", options.served_model,
                     "name of the model (default: the first of /v1/models)");
  command.add_option("--llama-server", options.llama_server,
                     "llama.cpp's server: rows more, with the same KV bytes in a slot for each "
                     "agent, in one slot, and with its defaults");
  command.add_option("--llama-model", options.llama_model,
                     "the GGUF file that llama-server runs (default: the same)");
  command.add_option("--llama-flags", options.llama_flags,
                     "more flags of llama-server, in one argument, as \"--no-repack\"");
  add_count_option(command, "--repeats", options.repeats,
                   "runs of each server, in alternating order");
  command.add_flag("--json", options.json, "one JSON object on stdout instead of a table");
}

}  // namespace

void add_bench_agents(const BenchCommand& bench) {
  const CommandSpec command = bench.app.add_subcommand(
      "agents", "TTFT of agents that share a small cache, with sessions and without");
  const auto options = std::make_shared<bench::BenchAgentsOptions>();
  add_agents_options(command, *options);
  command.footer(kBenchAgentsExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return bench::bench_agents(*options, run);
  });
}

}  // namespace pagoda::cli
