// pagoda bench batch: tokens per second over batch sizes.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/decode_traffic.h"
#include "app/draft_model.h"
#include "app/speculation.h"
#include "app/synthetic_request.h"
#include "bench/benchmarks.h"
#include "bench/decode.h"
#include "bench/samples.h"
#include "terminal/plot.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

// The steps of one batch size, over all repeats.
struct BatchSteps {
  std::vector<double> seconds;
  std::vector<double> tokens_each;
};

terminal::BenchReport report_of(const BenchBatchOptions& options, const BenchRun& run,
                                const app::LoadedModel& model,
                                const std::vector<BatchSteps>& steps) {
  const bool drafts = !options.speculation.methods.empty();
  std::vector<terminal::BenchColumn> columns = {{"batch_size", "batch size"},
                                                {"tokens_per_second", "tok/s", 1},
                                                {"tokens_per_second_each", "tok/s each", 1},
                                                {"step_seconds", "step s", 5},
                                                {"gigabytes_per_second", "GB/s", 2}};
  if (drafts) columns.push_back({"tokens_per_step", "tok/step", 2});
  terminal::BenchReport report("batch", std::move(columns));
  run.add_settings(report);
  report.add_setting("prompt_tokens", options.prompt_tokens);
  report.add_setting("new_tokens", options.new_tokens);
  report.add_setting("repeats", options.repeats);
  if (drafts) report.add_setting("speculation", app::speculation_name(options.speculation));
  const std::uint64_t weight_bytes = app::weight_bytes_read(model.weights(), model.config());
  const std::uint64_t kv_bytes = app::kv_bytes_read(model.config(), run.kv_elements(),
                                                    options.prompt_tokens + options.new_tokens / 2);
  for (std::size_t i = 0; i < options.batch_sizes.size(); ++i) {
    const double seconds = median(steps[i].seconds);
    const double tokens_each = median(steps[i].tokens_each);
    const std::uint64_t batch = options.batch_sizes[i];
    std::vector<terminal::ReportValue> row = {
        batch, static_cast<double>(batch) * tokens_each / seconds, tokens_each / seconds, seconds,
        static_cast<double>(weight_bytes + batch * kv_bytes) * 1e-9 / seconds};
    if (drafts) row.emplace_back(tokens_each);
    report.add_row(std::move(row));
  }
  return report;
}

terminal::PlotPanel throughput_plot(const std::vector<std::uint32_t>& batch_sizes,
                                    const std::vector<BatchSteps>& steps) {
  terminal::PlotPanel panel = {
      .title = "Decode of a batch",
      .x_title = "sequences together",
      .y_title = "tokens/s",
      .ticks = {},
      .lines = {{.name = "all together", .points = {}}, {.name = "each", .points = {}}}};
  for (std::size_t i = 0; i < batch_sizes.size(); ++i) {
    const double size = batch_sizes[i];
    const double rate = median(steps[i].tokens_each) / median(steps[i].seconds);
    panel.ticks.push_back({.x = size, .text = fmt::format("{}", batch_sizes[i])});
    panel.lines[0].points.push_back({.x = size, .y = size * rate});
    panel.lines[1].points.push_back({.x = size, .y = rate});
  }
  return panel;
}

// Without drafts steps are counted by their tokens.
Result<DecodeStep> measure_step(const BenchBatchOptions& options, BenchEngine& engine,
                                std::uint32_t batch_size) {
  std::vector<std::vector<TokenId>> prompts;
  for (std::uint32_t i = 0; i < batch_size; ++i) {
    prompts.push_back(random_prompt(engine.vocabulary(), options.prompt_tokens, i));
  }
  if (!options.speculation.methods.empty()) {
    return drafted_step(engine, prompts, options.new_tokens);
  }
  ASSIGN_OR_RETURN(const double seconds, decode_step_seconds(engine, prompts, options.new_tokens));
  return DecodeStep{.seconds = seconds};
}

}  // namespace

Result<terminal::BenchReport> bench_batch(const BenchBatchOptions& options, const BenchRun& run) {
  if (!options.plot.empty()) RETURN_IF_ERROR(terminal::write_plot(options.plot, {}));
  const std::uint32_t largest =
      *std::max_element(options.batch_sizes.begin(), options.batch_sizes.end());
  ASSIGN_OR_RETURN(engine::BackendOptions backend, run.backend_options(largest));
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  backend.speculation = options.speculation;
  ASSIGN_OR_RETURN(backend.draft_model,
                   app::load_draft_model(options.speculation, model->tokenizer(), run.kernels()));
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> engine,
                   BenchEngine::create(*model, run, backend));
  const std::uint64_t tokens = std::uint64_t{options.prompt_tokens} + options.new_tokens;
  RETURN_IF_ERROR(app::check_context(fmt::format("`prompt_tokens={}` and `new_tokens={}`",
                                                 options.prompt_tokens, options.new_tokens),
                                     tokens, engine->context_tokens()));
  RETURN_IF_ERROR(engine->check_room(tokens * largest));

  std::vector<BatchSteps> steps(options.batch_sizes.size());
  terminal::ProgressBar progress("batches", "measured", run.clock());
  std::uint64_t measured = 0;
  for (std::uint32_t repeat = 0; repeat < options.repeats; ++repeat) {
    for (std::size_t i = 0; i < options.batch_sizes.size(); ++i) {
      ASSIGN_OR_RETURN(const DecodeStep step,
                       measure_step(options, *engine, options.batch_sizes[i]));
      steps[i].seconds.push_back(step.seconds);
      steps[i].tokens_each.push_back(step.tokens_each);
      progress.show(++measured, options.repeats * options.batch_sizes.size());
    }
  }
  if (!options.plot.empty()) {
    RETURN_IF_ERROR(terminal::write_plot(options.plot,
                                         std::array{throughput_plot(options.batch_sizes, steps)}));
  }
  return report_of(options, run, *model, steps);
}

}  // namespace pagoda::bench
