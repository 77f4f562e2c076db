// pagoda bench serve: load on a running server, sent whether or not it keeps up.
#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "cli/bench.h"
#include "cli/load/probe.h"
#include "cli/load/report.h"
#include "cli/options.h"
#include "cli/progress_bar.h"
#include "kernels/select.h"

namespace pagoda::cli {
namespace {

constexpr int kInterrupted = 130;  // what shells expect after Ctrl-C
constexpr double kMilli = 1e-3;

enum class WorkloadKind { kRandom, kShareGpt, kPrefix, kConversation, kTrace, kFixed };
enum class PromptChoice { kAuto, kIds, kWords };

struct ServeLoadOptions {
  std::string url = "http://127.0.0.1:8000";
  std::string model;
  std::string api_key;
  bool insecure = false;
  bool chat = false;
  bool stream = true;
  bool ignore_eos = true;
  double temperature = 0;
  PromptChoice prompts = PromptChoice::kAuto;
  std::string token_ids = "300-499";

  WorkloadKind workload = WorkloadKind::kRandom;
  std::uint64_t requests = 100;
  std::string input_tokens;  // empty: the workload's own
  std::string output_tokens;
  std::uint32_t prefixes = 4;
  std::uint32_t prefix_tokens = 256;
  std::uint32_t turns = 4;
  double think_s = 1;
  std::string trace;
  double speed = 1;
  std::uint32_t block_tokens = 512;
  double length_scale = 1;
  std::string prompt;

  load::ArrivalKind arrivals = load::ArrivalKind::kPoisson;
  double rate = 0;
  std::uint32_t burst = 10;
  std::uint32_t concurrency = 0;
  double duration_s = 0;
  double timeout_s = 600;
  std::uint64_t seed = 0;
  double slo_first_ms = 0;
  double slo_gap_ms = 0;
  bool json = false;
};

const std::map<std::string, WorkloadKind> kWorkloads = {
    {"random", WorkloadKind::kRandom}, {"sharegpt", WorkloadKind::kShareGpt},
    {"prefix", WorkloadKind::kPrefix}, {"conversation", WorkloadKind::kConversation},
    {"trace", WorkloadKind::kTrace},   {"fixed", WorkloadKind::kFixed}};

std::string workload_name(WorkloadKind kind) {
  for (const auto& [name, value] : kWorkloads) {
    if (value == kind) return name;
  }
  return {};
}

Result<load::Lengths> lengths(const std::string& text, const char* argument,
                              const load::Lengths& otherwise) {
  if (text.empty()) return otherwise;
  return load::Lengths::parse(text, argument);
}

Result<load::IdRange> read_ids(const std::string& text) {
  load::IdRange ids;
  int read = 0;
  if (std::sscanf(text.c_str(), "%u-%u%n", &ids.first, &ids.last, &read) == 2 &&
      static_cast<std::size_t>(read) == text.size() && ids.first <= ids.last) {
    return ids;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--token-ids: \"{}\" is not two ids with a dash between, the smaller "
                           "first",
                           text)};
}

Result<std::unique_ptr<load::Workload>> read_trace_workload(const ServeLoadOptions& options,
                                                            const load::WorkloadOptions& shared) {
  if (options.trace.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--workload trace needs --trace FILE"};
  }
  ASSIGN_OR_RETURN(Trace trace, read_trace(options.trace, {}));
  if (trace.lines_malformed > 0) {
    print_warning(
        fmt::format("{}: {} lines are no requests", options.trace, trace.lines_malformed));
  }
  return load::make_workload(shared, load::TraceReplay{.trace = std::move(trace),
                                                       .speed = options.speed,
                                                       .block_tokens = options.block_tokens,
                                                       .scale = options.length_scale});
}

Result<std::unique_ptr<load::Workload>> make_workload(const ServeLoadOptions& options) {
  const bool long_text = options.workload == WorkloadKind::kRandom;
  const bool sharegpt = options.workload == WorkloadKind::kShareGpt;
  const std::uint32_t usual = long_text ? 128 : 32;
  ASSIGN_OR_RETURN(
      const load::Lengths input,
      lengths(options.input_tokens, "--input-tokens",
              sharegpt ? load::sharegpt_inputs() : load::Lengths::between(usual, usual)));
  ASSIGN_OR_RETURN(const load::Lengths output,
                   lengths(options.output_tokens, "--output-tokens",
                           sharegpt ? load::sharegpt_outputs() : load::Lengths::between(64, 64)));
  const load::WorkloadOptions shared = {.arrivals = {.kind = options.arrivals,
                                                     .rate = options.rate,
                                                     .burst = options.burst,
                                                     .seed = options.seed},
                                        .count = options.requests,
                                        .seed = options.seed};
  switch (options.workload) {
    case WorkloadKind::kRandom:
    case WorkloadKind::kShareGpt:
      return load::make_workload(shared, load::RandomText{input, output});
    case WorkloadKind::kPrefix:
      return load::make_workload(
          shared, load::SharedPrefixes{options.prefixes, options.prefix_tokens, input, output});
    case WorkloadKind::kConversation:
      return load::make_workload(
          shared, load::Conversations{options.turns, options.think_s, input, output});
    case WorkloadKind::kTrace:
      return read_trace_workload(options, shared);
    case WorkloadKind::kFixed:
      break;
  }
  if (options.prompt.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--workload fixed needs --prompt TEXT"};
  }
  return load::make_workload(shared, load::FixedPrompt{options.prompt, output.draw(0, 0, 0)});
}

Result<load::CompletionForm> make_form(const ServeLoadOptions& options,
                                       const load::Target& target) {
  load::CompletionForm form = {.chat = options.chat,
                               .stream = options.stream,
                               .ignore_eos = options.ignore_eos,
                               .temperature = options.temperature,
                               .model = options.model};
  ASSIGN_OR_RETURN(form.ids, read_ids(options.token_ids));
  if (form.model.empty()) {
    ASSIGN_OR_RETURN(form.model, load::first_model(target));
  }
  const bool speaks =
      options.workload == WorkloadKind::kConversation || options.workload == WorkloadKind::kFixed;
  if (options.chat) {
    form.prompts = load::PromptForm::kMessages;
  } else if (options.prompts == PromptChoice::kIds ||
             (options.prompts == PromptChoice::kAuto && !speaks &&
              load::takes_ids(target, form.model, form.ids))) {
    form.prompts = load::PromptForm::kIds;
  }
  return form;
}

const char* prompts_name(load::PromptForm form) {
  switch (form) {
    case load::PromptForm::kIds:
      return "token ids";
    case load::PromptForm::kWords:
      return "words";
    case load::PromptForm::kMessages:
      return "messages";
  }
  return "";
}

void add_settings(BenchReport& report, const ServeLoadOptions& options,
                  const load::CompletionForm& form) {
  report.add_setting("url", options.url);
  report.add_setting("model", form.model);
  report.add_setting("workload", workload_name(options.workload));
  report.add_setting("prompts", prompts_name(form.prompts));
  report.add_setting("stream", form.stream);
  if (options.workload == WorkloadKind::kTrace) {
    report.add_setting("speed", options.speed);
    report.add_setting("length_scale", options.length_scale);
  } else {
    report.add_setting("rate", options.rate > 0 ? nlohmann::ordered_json(options.rate)
                                                : nlohmann::ordered_json("none"));
  }
  report.add_setting("concurrency", options.concurrency > 0
                                        ? nlohmann::ordered_json(options.concurrency)
                                        : nlohmann::ordered_json("any"));
  report.add_setting("seed", options.seed);
}

Result<BenchReport> bench_serve(const ServeLoadOptions& options, const Interrupt& interrupt,
                                bool& answered) {
  ASSIGN_OR_RETURN(load::Target target, load::parse_target(options.url, "--url"));
  target.api_key = options.api_key;
  target.verify = !options.insecure;
  ASSIGN_OR_RETURN(const std::unique_ptr<load::Workload> workload, make_workload(options));
  ASSIGN_OR_RETURN(const load::CompletionForm form, make_form(options, target));
  const bool has_times = options.rate > 0 || options.workload == WorkloadKind::kTrace;
  const load::TrafficOptions sending = {.concurrency_max = options.concurrency,
                                        .closed_loop = !has_times && options.concurrency > 0,
                                        .duration_s = options.duration_s,
                                        .timeout_s = options.timeout_s};
  const load::Slo slo = {
      .first_token_s =
          options.slo_first_ms > 0 ? std::optional(options.slo_first_ms * kMilli) : std::nullopt,
      .gap_s = options.slo_gap_ms > 0 ? std::optional(options.slo_gap_ms * kMilli) : std::nullopt};
  const SteadyClock clock;
  ProgressBar progress("load", "requests", clock);
  const load::TrafficEvents events = {
      .stopped = [&] { return interrupt.requested(); },
      .on_progress = [&](std::uint64_t ended, std::uint64_t /*in_flight*/,
                         double /*seconds*/) { progress.show(ended, workload->count()); }};
  ASSIGN_OR_RETURN(const load::Traffic traffic,
                   load::send_traffic(target, form, *workload, sending, events, clock));
  progress.clear();
  const load::Summary summary = load::summarise(traffic, slo);
  answered = summary.first_token_due.count > 0;
  BenchReport report =
      load::report_load(traffic, summary, slo, has_times && options.concurrency == 0);
  add_settings(report, options, form);
  return report;
}

int run_serve_load(const BenchCommand& bench, const ServeLoadOptions& options) {
  const Result<const kernels::KernelSet*> kernels = kernels::select_set();
  if (!kernels.ok()) {
    print_error(kernels.error().message);
    return 1;
  }
  const Interrupt interrupt;
  bool answered = false;
  const Result<BenchReport> report = bench_serve(options, interrupt, answered);
  if (!report.ok()) {
    print_error(report.error().message);
    return report.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
  }
  const BenchMachine machine = describe_machine(*kernels.value());
  fmt::print("{}", options.json ? report.value().json(machine, bench.command_line).dump(2) + "\n"
                                : report.value().text(machine, bench.command_line));
  std::fflush(stdout);
  if (interrupt.requested()) return kInterrupted;
  return answered ? 0 : 1;
}

void add_server_options(CLI::App& command, ServeLoadOptions& options) {
  command.add_option(
      "--url", options.url,
      "of any OpenAI-compatible server, http or https (default " + options.url + ")");
  command.add_option("--served-model", options.model,
                     "name of the model (default: the first of /v1/models)");
  command.add_option("--api-key", options.api_key, "key for the server");
  command.add_flag("--insecure", options.insecure, "accept any certificate");
  command.add_flag("--chat", options.chat, "ask /v1/chat/completions, not /v1/completions");
  command.add_flag("--stream,!--no-stream", options.stream, "stream answers (default on)");
  command.add_flag("--ignore-eos,!--no-ignore-eos", options.ignore_eos,
                   "ask for answers of exactly --output-tokens (default on; turn off for servers "
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
                     "tokens of a prompt, e.g. 128 or 64-256; of an ending behind a prefix; of a "
                     "turn (default 128 or 32, of sharegpt its own)");
  command.add_option("--output-tokens", options.output_tokens,
                     "tokens of an answer, e.g. 64 or 16-128 (default 64, of sharegpt its own)");
  command.add_option("--prefixes", options.prefixes, "different prefixes (default 4)")
      ->check(CLI::Range(1u, 1u << 20));
  command.add_option("--prefix-tokens", options.prefix_tokens, "tokens of each (default 256)")
      ->check(CLI::Range(1u, 1u << 20));
  command.add_option("--turns", options.turns, "of each conversation (default 4)")
      ->check(CLI::Range(1u, 1000u));
  command
      .add_option("--think", options.think_s,
                  "mean seconds from an answer to the user's next turn (default 1)")
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
  const std::map<std::string, load::ArrivalKind> arrivals = {
      {"poisson", load::ArrivalKind::kPoisson},
      {"constant", load::ArrivalKind::kConstant},
      {"burst", load::ArrivalKind::kBurst}};
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
      .add_option("--slo-ttft", options.slo_first_ms,
                  "goodput counts answers whose first token came within this many ms")
      ->check(CLI::Range(0.0, 1e9));
  command
      .add_option("--slo-itl", options.slo_gap_ms,
                  "and whose mean gap between tokens was at most this many ms")
      ->check(CLI::Range(0.0, 1e9));
  command.add_flag("--json", options.json, "one JSON object on stdout instead of a table");
}

constexpr const char* kExamples =
    "Examples:\n"
    "  pagoda bench serve --url http://127.0.0.1:8000 --rate 10 -n 200\n"
    "  pagoda bench serve --rate 4 --duration 60 --workload sharegpt --slo-ttft 500 --slo-itl 50\n"
    "  pagoda bench serve --concurrency 64 --workload prefix --prefixes 8 --prefix-tokens 1000\n"
    "  pagoda bench serve --chat --workload conversation -n 20 --turns 6 --think 2 --rate 1\n"
    "  pagoda bench serve --workload trace --trace trace.jsonl.gz --speed 10 --length-scale 0.1\n"
    "  pagoda bench serve --url https://api.example.com/v1 --api-key $KEY --no-ignore-eos --chat\n"
    "With --rate the loop is open: requests are sent when they are due, and times are shown both "
    "from then and from when they were sent. Ctrl-C prints what was seen so far.";

}  // namespace

void add_bench_serve(const BenchCommand& bench) {
  CLI::App* const command =
      bench.app.add_subcommand("serve", "load on a running OpenAI-compatible server");
  const auto options = std::make_shared<ServeLoadOptions>();
  add_server_options(*command, *options);
  add_workload_options(*command, *options);
  add_sending_options(*command, *options);
  command->footer(kExamples);
  command->callback([bench, options] { bench.exit_status = run_serve_load(bench, *options); });
}

}  // namespace pagoda::cli
