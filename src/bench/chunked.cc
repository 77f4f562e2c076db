// pagoda bench chunked: what a long prompt does to the streams that are running.
#include <fmt/format.h>

#include <algorithm>

#include "bench/bench_engine.h"
#include "bench/benchmarks.h"
#include "bench/samples.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

constexpr std::uint64_t kStreamPromptTokens = 16;

// Times between tokens of the streams, over all repeats, and what the long prompt waited.
struct Gaps {
  std::vector<double> before_seconds;  // it came
  std::vector<double> while_seconds;   // it was computed
  std::vector<double> first_token_seconds;
};

// Adds the gaps that end after the first moment and whose middle comes before the second: tokens of
// one step come one after the other.
void add_gaps(const std::vector<std::int64_t>& times_ns, std::int64_t from_ns, std::int64_t to_ns,
              std::vector<double>& seconds) {
  for (std::size_t i = 1; i < times_ns.size(); ++i) {
    const std::int64_t middle_ns = times_ns[i - 1] + (times_ns[i] - times_ns[i - 1]) / 2;
    if (times_ns[i] <= from_ns || middle_ns >= to_ns) continue;
    seconds.push_back(seconds_between(times_ns[i - 1], times_ns[i]));
  }
}

Status measure_once(BenchEngine& engine, const BenchChunkedOptions& options, std::uint32_t repeat,
                    Gaps& gaps) {
  std::vector<PendingRequest> streams;
  const std::uint64_t seed = std::uint64_t{repeat} * (options.streams + 1);
  const auto room = static_cast<std::uint32_t>(engine.context_tokens() - kStreamPromptTokens);
  for (std::uint32_t i = 0; i < options.streams; ++i) {
    ASSIGN_OR_RETURN(PendingRequest stream,
                     engine.submit(fixed_request(
                         random_prompt(engine.vocabulary(), kStreamPromptTokens, seed + i), room)));
    streams.push_back(std::move(stream));
  }
  for (const PendingRequest& stream : streams) {
    RETURN_IF_ERROR(engine.wait_for_tokens(stream, options.quiet_tokens));
  }
  ASSIGN_OR_RETURN(
      const TimedOutput long_one,
      engine.generate(fixed_request(
          random_prompt(engine.vocabulary(), options.prompt_tokens, seed + options.streams), 1)));
  // One token more, so that the inter-token latency in which the prompt's last tokens were computed
  // has its end.
  for (const PendingRequest& stream : streams) {
    RETURN_IF_ERROR(engine.wait_for_tokens(stream, stream.sink->read().tokens.size() + 1));
    engine.cancel(stream);
  }
  std::int64_t begin_ns = 0;  // all streams run
  for (const PendingRequest& stream : streams) {
    begin_ns = std::max(begin_ns, stream.sink->read().times_ns.front());
  }
  for (const PendingRequest& stream : streams) {
    const std::vector<std::int64_t> times_ns = stream.sink->read().times_ns;
    add_gaps(times_ns, begin_ns, long_one.record.arrived_ns, gaps.before_seconds);
    add_gaps(times_ns, long_one.record.started_ns, long_one.record.first_token_ns,
             gaps.while_seconds);
  }
  gaps.first_token_seconds.push_back(long_one.record.first_token_s());
  return ok_status();
}

Result<Gaps> measure(const app::LoadedModel& model, const BenchChunkedOptions& options,
                     const BenchRun& run, std::uint32_t batched_tokens_max) {
  ASSIGN_OR_RETURN(engine::BackendOptions backend, run.backend_options(options.streams + 1));
  backend.scheduler.batched_tokens_max = batched_tokens_max;
  backend.prefix_caching = false;
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> engine,
                   BenchEngine::create(model, run, backend));
  RETURN_IF_ERROR(app::check_context(
      fmt::format("`prompt_tokens={}` and one token after them", options.prompt_tokens),
      std::uint64_t{options.prompt_tokens} + 1, engine->context_tokens()));
  RETURN_IF_ERROR(app::check_context(fmt::format("a stream's prompt of {} and `quiet_tokens={}`",
                                                 kStreamPromptTokens, options.quiet_tokens),
                                     kStreamPromptTokens + options.quiet_tokens,
                                     engine->context_tokens()));
  Gaps gaps;
  terminal::ProgressBar progress(fmt::format("steps of {} tokens", batched_tokens_max), "repeats",
                                 run.clock());
  for (std::uint32_t repeat = 0; repeat < options.repeats; ++repeat) {
    RETURN_IF_ERROR(measure_once(*engine, options, repeat, gaps));
    progress.show(repeat + 1, options.repeats);
  }
  return gaps;
}

void add_gap_row(terminal::BenchReport& report, const char* name, terminal::ReportValue tokens_max,
                 const std::vector<double>& gap_seconds,
                 terminal::ReportValue first_token_seconds) {
  const auto milliseconds = [&](double share) -> terminal::ReportValue {
    if (gap_seconds.empty()) return nullptr;
    return percentile(gap_seconds, share) * 1e3;
  };
  report.add_row({name, std::move(tokens_max), gap_seconds.size(), milliseconds(0.5),
                  milliseconds(0.95), milliseconds(0.99), milliseconds(1.0),
                  std::move(first_token_seconds)});
}

}  // namespace

Result<terminal::BenchReport> bench_chunked(const BenchChunkedOptions& options,
                                            const BenchRun& run) {
  if (options.batched_tokens_max >= options.prompt_tokens) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("`max_num_batched_tokens`: {} is not below `prompt_tokens={}`, so "
                             "that nothing would be cut into chunks",
                             options.batched_tokens_max, options.prompt_tokens)};
  }
  const std::uint32_t whole_tokens = options.prompt_tokens + options.streams;
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  ASSIGN_OR_RETURN(const Gaps chunked, measure(*model, options, run, options.batched_tokens_max));
  ASSIGN_OR_RETURN(const Gaps whole, measure(*model, options, run, whole_tokens));

  terminal::BenchReport report("chunked", {{"prompt", "long prompt"},
                                           {"batched_tokens_max", "tokens a step"},
                                           {"gaps", "ITLs"},
                                           {"p50_ms", "p50 ms", 1},
                                           {"p95_ms", "p95 ms", 1},
                                           {"p99_ms", "p99 ms", 1},
                                           {"max_ms", "max ms", 1},
                                           {"first_token_seconds", "its TTFT s", 2}});
  run.add_settings(report);
  report.add_setting("prompt_tokens", options.prompt_tokens);
  report.add_setting("streams", options.streams);
  report.add_setting("repeats", options.repeats);
  std::vector<double> quiet = chunked.before_seconds;
  quiet.insert(quiet.end(), whole.before_seconds.begin(), whole.before_seconds.end());
  add_gap_row(report, "none", nullptr, quiet, nullptr);
  add_gap_row(report, "in chunks", options.batched_tokens_max, chunked.while_seconds,
              median(chunked.first_token_seconds));
  add_gap_row(report, "whole", whole_tokens, whole.while_seconds,
              median(whole.first_token_seconds));
  if (!chunked.while_seconds.empty() && !whole.while_seconds.empty()) {
    const double ratio =
        percentile(whole.while_seconds, 0.99) / percentile(chunked.while_seconds, 0.99);
    report.add_figure("p99_ratio", ratio,
                      fmt::format("p99 ITL {:.1f}x shorter with chunks", ratio));
  }
  return report;
}

}  // namespace pagoda::bench
