#include "loadgen/serve_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "loadgen/load_plot.h"
#include "loadgen/probe.h"
#include "loadgen/report.h"
#include "replay/trace.h"
#include "terminal/messages.h"
#include "terminal/progress_bar.h"

namespace pagoda::loadgen {
namespace {

constexpr double kSecondsPerMillisecond = 1e-3;
constexpr std::uint32_t kIdsMax = 1u << 31;

Result<Lengths> lengths(const std::string& text, const char* field, const Lengths& otherwise) {
  if (text.empty()) return otherwise;
  return Lengths::parse(text, field);
}

Result<IdRange> read_ids(const std::string& text) {
  IdRange ids;
  int read = 0;
  if (std::sscanf(text.c_str(), "%u-%u%n", &ids.first, &ids.last, &read) == 2 &&
      static_cast<std::size_t>(read) == text.size() && ids.first <= ids.last &&
      ids.last < kIdsMax) {
    return ids;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("`token_ids`: \"{}\" is not two ids with a dash between, the smaller "
                           "first",
                           text)};
}

Result<std::unique_ptr<Workload>> read_trace_workload(const ServeLoadOptions& options,
                                                      const WorkloadOptions& shared) {
  if (options.trace.empty()) {
    return Error{ErrorCode::kInvalidArgument, "`workload=trace` needs `trace=FILE`"};
  }
  ASSIGN_OR_RETURN(replay::Trace trace, replay::read_trace(options.trace, {}));
  if (trace.lines_malformed > 0) {
    terminal::print_warning(
        fmt::format("{}: {} lines are no requests", options.trace, trace.lines_malformed));
  }
  return make_workload(shared, TraceReplay{.trace = std::move(trace),
                                           .speed = options.speed,
                                           .block_tokens = options.block_tokens,
                                           .scale = options.length_scale});
}

Result<std::unique_ptr<Workload>> workload_of(const ServeLoadOptions& options) {
  const bool long_text = options.workload == WorkloadKind::kRandom;
  const bool sharegpt = options.workload == WorkloadKind::kShareGpt;
  const std::uint32_t usual = long_text ? 128 : 32;
  ASSIGN_OR_RETURN(const Lengths input,
                   lengths(options.input_tokens, "input_tokens",
                           sharegpt ? sharegpt_inputs() : Lengths::between(usual, usual)));
  ASSIGN_OR_RETURN(const Lengths output,
                   lengths(options.output_tokens, "output_tokens",
                           sharegpt ? sharegpt_outputs() : Lengths::between(64, 64)));
  const WorkloadOptions shared = {.arrivals = {.kind = options.arrivals,
                                               .rate = options.rate,
                                               .burst = options.burst,
                                               .seed = options.seed},
                                  .count = options.requests,
                                  .seed = options.seed};
  switch (options.workload) {
    case WorkloadKind::kRandom:
    case WorkloadKind::kShareGpt:
      return make_workload(shared, RandomText{input, output});
    case WorkloadKind::kPrefix:
      return make_workload(shared,
                           SharedPrefixes{options.prefixes, options.prefix_tokens, input, output});
    case WorkloadKind::kConversation:
      return make_workload(shared, Conversations{options.turns, options.think_s, input, output});
    case WorkloadKind::kTrace:
      return read_trace_workload(options, shared);
    case WorkloadKind::kFixed:
      break;
  }
  if (options.prompt.empty()) {
    return Error{ErrorCode::kInvalidArgument, "`workload=fixed` needs `prompt=TEXT`"};
  }
  return make_workload(shared, FixedPrompt{options.prompt, output.draw(0, 0, 0)});
}

Result<CompletionForm> make_form(const ServeLoadOptions& options, const Target& target) {
  CompletionForm form = {.chat = options.chat,
                         .stream = options.stream,
                         .ignore_eos = options.ignore_eos,
                         .temperature = options.temperature,
                         .model = options.model};
  ASSIGN_OR_RETURN(form.ids, read_ids(options.token_ids));
  if (form.model.empty()) {
    ASSIGN_OR_RETURN(form.model, first_model(target));
  }
  const bool speaks =
      options.workload == WorkloadKind::kConversation || options.workload == WorkloadKind::kFixed;
  if (options.chat) {
    form.prompts = PromptForm::kMessages;
  } else if (options.prompts == PromptChoice::kIds ||
             (options.prompts == PromptChoice::kAuto && !speaks &&
              takes_ids(target, form.model, form.ids))) {
    form.prompts = PromptForm::kIds;
  }
  return form;
}

const char* prompts_name(PromptForm form) {
  switch (form) {
    case PromptForm::kIds:
      return "token ids";
    case PromptForm::kWords:
      return "words";
    case PromptForm::kMessages:
      return "messages";
  }
  return "";
}

std::string workload_name(WorkloadKind kind) {
  switch (kind) {
    case WorkloadKind::kRandom:
      return "random";
    case WorkloadKind::kShareGpt:
      return "sharegpt";
    case WorkloadKind::kPrefix:
      return "prefix";
    case WorkloadKind::kConversation:
      return "conversation";
    case WorkloadKind::kTrace:
      return "trace";
    case WorkloadKind::kFixed:
      return "fixed";
  }
  return {};
}

void add_settings(terminal::BenchReport& report, const ServeLoadOptions& options,
                  const CompletionForm& form) {
  report.add_setting("url", options.url);
  report.add_setting("model", form.model);
  report.add_setting("workload", workload_name(options.workload));
  report.add_setting("prompts", prompts_name(form.prompts));
  report.add_setting("stream", form.stream);
  if (options.workload == WorkloadKind::kTrace) {
    report.add_setting("speed", options.speed);
    report.add_setting("length_scale", options.length_scale);
  } else {
    report.add_setting("rate", options.rate > 0 ? terminal::ReportValue(options.rate)
                                                : terminal::ReportValue("none"));
  }
  report.add_setting("concurrency", options.concurrency > 0
                                        ? terminal::ReportValue(options.concurrency)
                                        : terminal::ReportValue("any"));
  report.add_setting("seed", options.seed);
}

std::uint64_t whole_seconds(double seconds) {
  return static_cast<std::uint64_t>(std::ceil(seconds));
}

}  // namespace

Result<ServerMeasurement> measure_server(const ServeLoadOptions& options,
                                         const terminal::Interrupt& interrupt) {
  ASSIGN_OR_RETURN(Target target, parse_target(options.url, "`url`"));
  target.api_key = options.api_key;
  target.verify = !options.insecure;
  ASSIGN_OR_RETURN(const std::unique_ptr<Workload> workload, workload_of(options));
  ASSIGN_OR_RETURN(const CompletionForm form, make_form(options, target));
  if (!options.plot.empty()) RETURN_IF_ERROR(terminal::write_plot(options.plot, {}));
  const bool has_times = options.rate > 0 || options.workload == WorkloadKind::kTrace;
  const LoadOptions sending = {.concurrency_max = options.concurrency,
                               .closed_loop = !has_times && options.concurrency > 0,
                               .duration_s = options.duration_s,
                               .timeout_s = options.timeout_s};
  const Slo slo = {.ttft_s = options.slo_ttft_ms > 0
                                 ? std::optional(options.slo_ttft_ms * kSecondsPerMillisecond)
                                 : std::nullopt,
                   .itl_s = options.slo_itl_ms > 0
                                ? std::optional(options.slo_itl_ms * kSecondsPerMillisecond)
                                : std::nullopt};
  const SteadyClock clock;
  const bool timed = options.duration_s > 0;
  terminal::ProgressBar progress("load", timed ? "s" : "requests", clock);
  const LoadEvents events = {.stopped = [&] { return interrupt.requested(); },
                             .on_progress =
                                 [&](std::uint64_t ended, double seconds) {
                                   if (timed) {
                                     const double shown = std::min(seconds, options.duration_s);
                                     progress.show(static_cast<std::uint64_t>(shown),
                                                   whole_seconds(options.duration_s));
                                   } else {
                                     progress.show(ended, workload->count());
                                   }
                                 }};
  ASSIGN_OR_RETURN(const LoadResult result,
                   run_load(target, form, *workload, sending, events, clock));
  progress.clear();
  if (!options.plot.empty()) RETURN_IF_ERROR(terminal::write_plot(options.plot, plot_load(result)));
  const Summary summary = summarise(result, slo);
  terminal::BenchReport report =
      report_load(result, summary, slo, has_times && options.concurrency == 0);
  add_settings(report, options, form);
  return ServerMeasurement{std::move(report), summary.ttft_scheduled.count > 0};
}

}  // namespace pagoda::loadgen
