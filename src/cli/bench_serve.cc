// pagoda bench serve: load on a running server, sent whether or not it keeps up.
#include <fmt/format.h>

#include <cstdio>

#include "app/machine.h"
#include "cli/bench_flags.h"
#include "cli/options.h"
#include "kernels/select.h"
#include "loadgen/serve_load.h"

namespace pagoda::cli {
namespace {

constexpr std::initializer_list<std::pair<const char*, loadgen::WorkloadKind>> kWorkloads = {
    {"random", loadgen::WorkloadKind::kRandom},
    {"sharegpt", loadgen::WorkloadKind::kShareGpt},
    {"prefix", loadgen::WorkloadKind::kPrefix},
    {"conversation", loadgen::WorkloadKind::kConversation},
    {"trace", loadgen::WorkloadKind::kTrace},
    {"fixed", loadgen::WorkloadKind::kFixed}};

void add_server_options(const CommandSpec& command, loadgen::ServeLoadOptions& options) {
  command.add_option(
      "--url", options.url,
      "URL of any OpenAI-compatible server, http or https (default " + options.url + ")");
  command.add_option("--served-model", options.model,
                     "name of the model (default: the first of /v1/models)");
  command.add_option("--api-key", options.api_key, "key for the server");
  command.add_flag("--insecure", options.insecure, "accept any certificate");
  command.add_flag("--chat", options.chat, "use /v1/chat/completions, not /v1/completions");
  command.add_flag("--stream,!--no-stream", options.stream, "stream the output (default on)");
  command.add_flag(
      "--ignore-eos,!--no-ignore-eos", options.ignore_eos,
      "generate exactly --output-tokens (default on; turn off for servers that refuse the field)");
  command
      .add_option("--temp,--temperature", options.temperature, "sampling temperature (default 0)")
      .range(0.0, 2.0);
  command.add_choice("--prompts", options.prompts,
                     {{"auto", loadgen::PromptChoice::kAuto},
                      {"ids", loadgen::PromptChoice::kIds},
                      {"words", loadgen::PromptChoice::kWords}},
                     "prompts as token ids or as words; auto: ids where the server takes them");
  command.add_option("--token-ids", options.token_ids,
                     "ids that prompts are made of (default " + options.token_ids + ")");
}

void add_workload_options(const CommandSpec& command, loadgen::ServeLoadOptions& options) {
  command.add_choice("--workload", options.workload, kWorkloads,
                     "random, sharegpt, prefix, conversation, trace or fixed (default random)");
  command
      .add_option("-n,--requests", options.requests,
                  "requests at most; users of conversations (default 100)")
      .range(std::uint64_t{1}, std::uint64_t{1} << 32);
  command.add_option("--input-tokens", options.input_tokens,
                     "tokens of a prompt, e.g. 128 or 64-256; of a suffix behind a prefix; of a "
                     "turn (default 128 or 32, of sharegpt its own)");
  command.add_option("--output-tokens", options.output_tokens,
                     "tokens of an output, e.g. 64 or 16-128 (default 64, of sharegpt its own)");
  command.add_option("--prefixes", options.prefixes, "different prefixes (default 4)")
      .range(1u, 1u << 20);
  command
      .add_option("--prefix-tokens", options.prefix_tokens, "tokens of each prefix (default 256)")
      .range(1u, 1u << 20);
  command.add_option("--turns", options.turns, "turns of each conversation (default 4)")
      .range(1u, 1000u);
  command
      .add_option("--think", options.think_s,
                  "mean seconds from a reply to the user's next turn (default 1)")
      .range(0.0, 3600.0);
  command.add_option("--trace", options.trace, "file that `pagoda replay` reads");
  command.add_option("--speed", options.speed, "speed of the trace; 2: twice as fast (default 1)")
      .range(1e-3, 1e6);
  command
      .add_option("--block-tokens", options.block_tokens,
                  "tokens of one hash id of the trace (default 512)")
      .range(1u, 1u << 20);
  command
      .add_option("--length-scale", options.length_scale,
                  "factor of all lengths of the trace, for models of small context (default 1)")
      .range(1e-6, 1e3);
  command.add_option("-p,--prompt", options.prompt, "text of --workload fixed");
}

void add_sending_options(const CommandSpec& command, loadgen::ServeLoadOptions& options) {
  command
      .add_option("--rate", options.rate,
                  "requests (or users) a second, sent whether or not the server keeps up (default "
                  "0: as soon as --concurrency allows)")
      .range(0.0, 1e6);
  command.add_choice("--arrivals", options.arrivals,
                     {{"poisson", loadgen::ArrivalKind::kPoisson},
                      {"constant", loadgen::ArrivalKind::kConstant},
                      {"burst", loadgen::ArrivalKind::kBurst}},
                     "poisson, constant or burst (default poisson)");
  command.add_option("--burst", options.burst, "requests that come together (default 10)")
      .range(1u, 1u << 20);
  command.add_option("--concurrency", options.concurrency, "requests in flight (default 0: any)")
      .range(0u, 1u << 20);
  command
      .add_option("--duration", options.duration_s,
                  "seconds after which nothing more is sent (default 0: until --requests)")
      .range(0.0, 86400.0);
  command.add_option("--timeout", options.timeout_s, "seconds for one request (default 600)")
      .range(0.01, 86400.0);
  command.add_option("--seed", options.seed, "seed of lengths, texts and arrivals (default 0)");
  command
      .add_option("--slo-ttft", options.slo_ttft_ms,
                  "goodput counts requests whose TTFT is at most this many ms")
      .range(0.0, 1e9);
  command
      .add_option("--slo-itl", options.slo_itl_ms,
                  "goodput counts requests whose mean ITL is at most this many ms")
      .range(0.0, 1e9);
  command.add_flag("--json", options.json, "one JSON object on stdout instead of a table");
  command.add_option("--plot", options.plot, "draw TTFT and ITL over time into this SVG file")
      .type_name("FILE");
}

int run_serve_load(const BenchCommand& bench, const loadgen::ServeLoadOptions& options) {
  const Result<const kernels::KernelSet*> kernels = kernels::select_set();
  if (!kernels.ok()) {
    print_error(kernels.error().message);
    return 1;
  }
  const terminal::Interrupt interrupt;
  const Result<loadgen::ServerMeasurement> measured = loadgen::measure_server(options, interrupt);
  if (!measured.ok()) {
    print_error(measured.error().message);
    return measured.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
  }
  const terminal::BenchReport& report = measured.value().report;
  const terminal::BenchMachine machine = app::describe_machine(*kernels.value());
  fmt::print("{}", options.json ? report.json_text(machine, bench.command_line)
                                : report.text(machine, bench.command_line));
  std::fflush(stdout);
  if (interrupt.requested()) return kInterrupted;
  return measured.value().answered ? 0 : 1;
}

constexpr const char* kBenchServeExamples =
    "Examples:\n"
    "  pagoda bench serve --url http://127.0.0.1:8000 --rate 10 -n 200\n"
    "  pagoda bench serve --rate 4 --duration 60 --workload sharegpt --slo-ttft 500 --slo-itl 50\n"
    "  pagoda bench serve --concurrency 64 --workload prefix --prefixes 8 --prefix-tokens 1000\n"
    "  pagoda bench serve --chat --workload conversation -n 20 --turns 6 --think 2 --rate 1\n"
    "  pagoda bench serve --workload trace --trace trace.jsonl.gz --speed 10 --length-scale 0.1\n"
    "  pagoda bench serve --url https://api.example.com/v1 --api-key $KEY --no-ignore-eos --chat\n"
    "With --rate the loop is open: requests are sent when scheduled, and times are shown both "
    "since then and since they were sent. Ctrl-C prints what was seen so far.";

}  // namespace

void add_bench_serve(const BenchCommand& bench) {
  const CommandSpec command =
      bench.app.add_subcommand("serve", "load on a running OpenAI-compatible server");
  const auto options = std::make_shared<loadgen::ServeLoadOptions>();
  command.group("Server");
  add_server_options(command, *options);
  command.group("Workload");
  add_workload_options(command, *options);
  command.group("Sending");
  add_sending_options(command, *options);
  command.used_most({"--url", "--served-model", "--api-key", "--chat", "--workload", "--requests",
                     "--input-tokens", "--output-tokens", "--rate", "--concurrency"});
  command.footer(kBenchServeExamples);
  command.callback([bench, options] { bench.exit_status = run_serve_load(bench, *options); });
}

}  // namespace pagoda::cli
