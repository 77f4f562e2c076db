// pagoda bench serve: load on a running server, sent whether or not it keeps up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/benchmarks.h"
#include "cli/bench_serve_options.h"
#include "cli/options.h"
#include "kernels/select.h"
#include "loadgen/probe.h"
#include "loadgen/report.h"
#include "terminal/progress_bar.h"

namespace pagoda::cli {
namespace {

constexpr int kInterrupted = 130;  // what shells expect after Ctrl-C
constexpr double kMilli = 1e-3;
constexpr std::uint32_t kIdsMax = 1u << 31;

Result<loadgen::Lengths> lengths(const std::string& text, const char* argument,
                                 const loadgen::Lengths& otherwise) {
  if (text.empty()) return otherwise;
  return loadgen::Lengths::parse(text, argument);
}

Result<loadgen::IdRange> read_ids(const std::string& text) {
  loadgen::IdRange ids;
  int read = 0;
  if (std::sscanf(text.c_str(), "%u-%u%n", &ids.first, &ids.last, &read) == 2 &&
      static_cast<std::size_t>(read) == text.size() && ids.first <= ids.last &&
      ids.last < kIdsMax) {
    return ids;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--token-ids: \"{}\" is not two ids with a dash between, the smaller "
                           "first",
                           text)};
}

Result<std::unique_ptr<loadgen::Workload>> read_trace_workload(
    const ServeLoadOptions& options, const loadgen::WorkloadOptions& shared) {
  if (options.trace.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--workload trace needs --trace FILE"};
  }
  ASSIGN_OR_RETURN(replay::Trace trace, replay::read_trace(options.trace, {}));
  if (trace.lines_malformed > 0) {
    print_warning(
        fmt::format("{}: {} lines are no requests", options.trace, trace.lines_malformed));
  }
  return loadgen::make_workload(shared, loadgen::TraceReplay{.trace = std::move(trace),
                                                             .speed = options.speed,
                                                             .block_tokens = options.block_tokens,
                                                             .scale = options.length_scale});
}

Result<std::unique_ptr<loadgen::Workload>> make_workload(const ServeLoadOptions& options) {
  const bool long_text = options.workload == WorkloadKind::kRandom;
  const bool sharegpt = options.workload == WorkloadKind::kShareGpt;
  const std::uint32_t usual = long_text ? 128 : 32;
  ASSIGN_OR_RETURN(
      const loadgen::Lengths input,
      lengths(options.input_tokens, "--input-tokens",
              sharegpt ? loadgen::sharegpt_inputs() : loadgen::Lengths::between(usual, usual)));
  ASSIGN_OR_RETURN(
      const loadgen::Lengths output,
      lengths(options.output_tokens, "--output-tokens",
              sharegpt ? loadgen::sharegpt_outputs() : loadgen::Lengths::between(64, 64)));
  const loadgen::WorkloadOptions shared = {.arrivals = {.kind = options.arrivals,
                                                        .rate = options.rate,
                                                        .burst = options.burst,
                                                        .seed = options.seed},
                                           .count = options.requests,
                                           .seed = options.seed};
  switch (options.workload) {
    case WorkloadKind::kRandom:
    case WorkloadKind::kShareGpt:
      return loadgen::make_workload(shared, loadgen::RandomText{input, output});
    case WorkloadKind::kPrefix:
      return loadgen::make_workload(
          shared, loadgen::SharedPrefixes{options.prefixes, options.prefix_tokens, input, output});
    case WorkloadKind::kConversation:
      return loadgen::make_workload(
          shared, loadgen::Conversations{options.turns, options.think_s, input, output});
    case WorkloadKind::kTrace:
      return read_trace_workload(options, shared);
    case WorkloadKind::kFixed:
      break;
  }
  if (options.prompt.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--workload fixed needs --prompt TEXT"};
  }
  return loadgen::make_workload(shared, loadgen::FixedPrompt{options.prompt, output.draw(0, 0, 0)});
}

Result<loadgen::CompletionForm> make_form(const ServeLoadOptions& options,
                                          const loadgen::Target& target) {
  loadgen::CompletionForm form = {.chat = options.chat,
                                  .stream = options.stream,
                                  .ignore_eos = options.ignore_eos,
                                  .temperature = options.temperature,
                                  .model = options.model};
  ASSIGN_OR_RETURN(form.ids, read_ids(options.token_ids));
  if (form.model.empty()) {
    ASSIGN_OR_RETURN(form.model, loadgen::first_model(target));
  }
  const bool speaks =
      options.workload == WorkloadKind::kConversation || options.workload == WorkloadKind::kFixed;
  if (options.chat) {
    form.prompts = loadgen::PromptForm::kMessages;
  } else if (options.prompts == PromptChoice::kIds ||
             (options.prompts == PromptChoice::kAuto && !speaks &&
              loadgen::takes_ids(target, form.model, form.ids))) {
    form.prompts = loadgen::PromptForm::kIds;
  }
  return form;
}

const char* prompts_name(loadgen::PromptForm form) {
  switch (form) {
    case loadgen::PromptForm::kIds:
      return "token ids";
    case loadgen::PromptForm::kWords:
      return "words";
    case loadgen::PromptForm::kMessages:
      return "messages";
  }
  return "";
}

void add_settings(terminal::BenchReport& report, const ServeLoadOptions& options,
                  const loadgen::CompletionForm& form) {
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

std::uint64_t whole_seconds(double seconds) {
  return static_cast<std::uint64_t>(std::ceil(seconds));
}

Result<terminal::BenchReport> bench_serve(const ServeLoadOptions& options,
                                          const terminal::Interrupt& interrupt, bool& answered) {
  ASSIGN_OR_RETURN(loadgen::Target target, loadgen::parse_target(options.url, "--url"));
  target.api_key = options.api_key;
  target.verify = !options.insecure;
  ASSIGN_OR_RETURN(const std::unique_ptr<loadgen::Workload> workload, make_workload(options));
  ASSIGN_OR_RETURN(const loadgen::CompletionForm form, make_form(options, target));
  const bool has_times = options.rate > 0 || options.workload == WorkloadKind::kTrace;
  const loadgen::LoadOptions sending = {.concurrency_max = options.concurrency,
                                        .closed_loop = !has_times && options.concurrency > 0,
                                        .duration_s = options.duration_s,
                                        .timeout_s = options.timeout_s};
  const loadgen::Slo slo = {
      .ttft_s =
          options.slo_ttft_ms > 0 ? std::optional(options.slo_ttft_ms * kMilli) : std::nullopt,
      .itl_s = options.slo_itl_ms > 0 ? std::optional(options.slo_itl_ms * kMilli) : std::nullopt};
  const SteadyClock clock;
  const bool timed = options.duration_s > 0;
  terminal::ProgressBar progress("load", timed ? "s" : "requests", clock);
  const loadgen::LoadEvents events = {
      .stopped = [&] { return interrupt.requested(); },
      .on_progress =
          [&](std::uint64_t ended, double seconds) {
            if (timed) {
              const double shown = std::min(seconds, options.duration_s);
              progress.show(static_cast<std::uint64_t>(shown), whole_seconds(options.duration_s));
            } else {
              progress.show(ended, workload->count());
            }
          }};
  ASSIGN_OR_RETURN(const loadgen::LoadResult result,
                   loadgen::run_load(target, form, *workload, sending, events, clock));
  progress.clear();
  const loadgen::Summary summary = loadgen::summarise(result, slo);
  answered = summary.ttft_scheduled.count > 0;
  terminal::BenchReport report =
      loadgen::report_load(result, summary, slo, has_times && options.concurrency == 0);
  add_settings(report, options, form);
  return report;
}

int run_serve_load(const bench::BenchCommand& bench, const ServeLoadOptions& options) {
  const Result<const kernels::KernelSet*> kernels = kernels::select_set();
  if (!kernels.ok()) {
    print_error(kernels.error().message);
    return 1;
  }
  const terminal::Interrupt interrupt;
  bool answered = false;
  const Result<terminal::BenchReport> report = bench_serve(options, interrupt, answered);
  if (!report.ok()) {
    print_error(report.error().message);
    return report.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
  }
  const terminal::BenchMachine machine = terminal::describe_machine(*kernels.value());
  fmt::print("{}", options.json ? report.value().json(machine, bench.command_line).dump(2) + "\n"
                                : report.value().text(machine, bench.command_line));
  std::fflush(stdout);
  if (interrupt.requested()) return kInterrupted;
  return answered ? 0 : 1;
}

constexpr const char* kExamples =
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

void add_bench_serve(const bench::BenchCommand& bench) {
  CLI::App* const command =
      bench.app.add_subcommand("serve", "load on a running OpenAI-compatible server");
  const auto options = std::make_shared<ServeLoadOptions>();
  add_serve_load_options(*command, *options);
  command->footer(kExamples);
  command->callback([bench, options] { bench.exit_status = run_serve_load(bench, *options); });
}

}  // namespace pagoda::cli
