#include "cli/bench_serve_options.h"

#include <map>

namespace pagoda::cli {
namespace {

const std::map<std::string, WorkloadKind> kWorkloads = {
    {"random", WorkloadKind::kRandom}, {"sharegpt", WorkloadKind::kShareGpt},
    {"prefix", WorkloadKind::kPrefix}, {"conversation", WorkloadKind::kConversation},
    {"trace", WorkloadKind::kTrace},   {"fixed", WorkloadKind::kFixed}};

void add_server_options(CLI::App& command, ServeLoadOptions& options) {
  command.add_option(
      "--url", options.url,
      "of any OpenAI-compatible server, http or https (default " + options.url + ")");
  command.add_option("--served-model", options.model,
                     "name of the model (default: the first of /v1/models)");
  command.add_option("--api-key", options.api_key, "key for the server");
  command.add_flag("--insecure", options.insecure, "accept any certificate");
  command.add_flag("--chat", options.chat, "ask /v1/chat/completions, not /v1/completions");
  command.add_flag("--stream,!--no-stream", options.stream, "stream the output (default on)");
  command.add_flag("--ignore-eos,!--no-ignore-eos", options.ignore_eos,
                   "ask for exactly --output-tokens (default on; turn off for servers "
                   "that refuse the field)");
  command.add_option("--temperature", options.temperature, "of sampling (default 0)")
      ->check(CLI::Range(0.0, 2.0));
  const std::map<std::string, PromptChoice> prompts = {
      {"auto", PromptChoice::kAuto}, {"ids", PromptChoice::kIds}, {"words", PromptChoice::kWords}};
  command
      .add_option("--prompts", options.prompts,
                  "prompts as token ids or as words; auto: ids where the server takes them")
      ->transform(CLI::CheckedTransformer(prompts));
  command.add_option("--token-ids", options.token_ids,
                     "ids that prompts are made of (default " + options.token_ids + ")");
}

void add_workload_options(CLI::App& command, ServeLoadOptions& options) {
  command
      .add_option("--workload", options.workload,
                  "random, sharegpt, prefix, conversation, trace or fixed (default random)")
      ->transform(CLI::CheckedTransformer(kWorkloads));
  command
      .add_option("-n,--requests", options.requests,
                  "requests at most; users of conversations (default 100)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
  command.add_option("--input-tokens", options.input_tokens,
                     "tokens of a prompt, e.g. 128 or 64-256; of a suffix behind a prefix; of a "
                     "turn (default 128 or 32, of sharegpt its own)");
  command.add_option("--output-tokens", options.output_tokens,
                     "tokens of an output, e.g. 64 or 16-128 (default 64, of sharegpt its own)");
  command.add_option("--prefixes", options.prefixes, "different prefixes (default 4)")
      ->check(CLI::Range(1u, 1u << 20));
  command.add_option("--prefix-tokens", options.prefix_tokens, "tokens of each (default 256)")
      ->check(CLI::Range(1u, 1u << 20));
  command.add_option("--turns", options.turns, "of each conversation (default 4)")
      ->check(CLI::Range(1u, 1000u));
  command
      .add_option("--think", options.think_s,
                  "mean seconds from a reply to the user's next turn (default 1)")
      ->check(CLI::Range(0.0, 3600.0));
  command.add_option("--trace", options.trace, "file that `pagoda replay` reads");
  command.add_option("--speed", options.speed, "of the trace; 2: twice as fast (default 1)")
      ->check(CLI::Range(1e-3, 1e6));
  command
      .add_option("--block-tokens", options.block_tokens,
                  "tokens of one hash id of the trace (default 512)")
      ->check(CLI::Range(1u, 1u << 20));
  command
      .add_option("--length-scale", options.length_scale,
                  "of all lengths of the trace, for models of small context (default 1)")
      ->check(CLI::Range(1e-6, 1e3));
  command.add_option("-p,--prompt", options.prompt, "text of --workload fixed");
}

void add_sending_options(CLI::App& command, ServeLoadOptions& options) {
  const std::map<std::string, loadgen::ArrivalKind> arrivals = {
      {"poisson", loadgen::ArrivalKind::kPoisson},
      {"constant", loadgen::ArrivalKind::kConstant},
      {"burst", loadgen::ArrivalKind::kBurst}};
  command
      .add_option("--rate", options.rate,
                  "requests (or users) a second, sent whether or not the server keeps up (default "
                  "0: as soon as --concurrency allows)")
      ->check(CLI::Range(0.0, 1e6));
  command
      .add_option("--arrivals", options.arrivals, "poisson, constant or burst (default poisson)")
      ->transform(CLI::CheckedTransformer(arrivals));
  command.add_option("--burst", options.burst, "requests that come together (default 10)")
      ->check(CLI::Range(1u, 1u << 20));
  command.add_option("--concurrency", options.concurrency, "requests in flight (default 0: any)")
      ->check(CLI::Range(0u, 1u << 20));
  command
      .add_option("--duration", options.duration_s,
                  "seconds after which nothing more is sent (default 0: until --requests)")
      ->check(CLI::Range(0.0, 86400.0));
  command.add_option("--timeout", options.timeout_s, "seconds for one request (default 600)")
      ->check(CLI::Range(0.01, 86400.0));
  command.add_option("--seed", options.seed, "of lengths, texts and arrivals (default 0)");
  command
      .add_option("--slo-ttft", options.slo_ttft_ms,
                  "goodput counts requests whose TTFT is at most this many ms")
      ->check(CLI::Range(0.0, 1e9));
  command.add_option("--slo-itl", options.slo_itl_ms, "and whose mean ITL is at most this many ms")
      ->check(CLI::Range(0.0, 1e9));
  command.add_flag("--json", options.json, "one JSON object on stdout instead of a table");
}

}  // namespace

void add_serve_load_options(CLI::App& command, ServeLoadOptions& options) {
  add_server_options(command, options);
  add_workload_options(command, options);
  add_sending_options(command, options);
}

std::string workload_name(WorkloadKind kind) {
  for (const auto& [name, value] : kWorkloads) {
    if (value == kind) return name;
  }
  return {};
}

}  // namespace pagoda::cli
