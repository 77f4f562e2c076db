// pagoda bench depth: tokens per second over context depths.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/decode_traffic.h"
#include "app/synthetic_request.h"
#include "bench/benchmarks.h"
#include "bench/decode.h"
#include "bench/samples.h"
#include "terminal/plot.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

// 0, doubling from 256 on, and the deepest at which the new tokens still fit.
std::vector<std::uint32_t> depths_to(std::uint64_t context_tokens, std::uint32_t new_tokens) {
  const auto deepest = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      context_tokens - std::min<std::uint64_t>(context_tokens, new_tokens), UINT32_MAX));
  std::vector<std::uint32_t> depths = {0};
  for (std::uint64_t depth = 256; depth < deepest; depth *= 2) {
    depths.push_back(static_cast<std::uint32_t>(depth));
  }
  if (deepest > 0) depths.push_back(deepest);
  return depths;
}

// A sequence needs one token to begin with, at depth 0 too.
std::uint32_t prompt_tokens(std::uint32_t depth) { return std::max(depth, 1u); }

terminal::BenchReport report_of(const BenchDepthOptions& options, const BenchRun& run,
                                const app::LoadedModel& model,
                                const std::vector<std::uint32_t>& depths,
                                const std::vector<std::vector<double>>& step_seconds) {
  terminal::BenchReport report("depth", {{"depth", "depth"},
                                         {"tokens_per_second", "tok/s", 1},
                                         {"step_seconds", "step s", 5},
                                         {"kv_bytes", "KV bytes read"},
                                         {"gigabytes_per_second", "GB/s", 2}});
  run.add_settings(report);
  report.add_setting("new_tokens", options.new_tokens);
  report.add_setting("repeats", options.repeats);
  const std::uint64_t weight_bytes = app::weight_bytes_read(model.weights(), model.config());
  report.add_setting("weight_bytes", weight_bytes);
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const double seconds = median(step_seconds[i]);
    const std::uint64_t kv_bytes =
        app::kv_bytes_read(model.config(), run.kv_elements(),
                           std::uint64_t{prompt_tokens(depths[i])} + options.new_tokens / 2);
    report.add_row({depths[i], 1 / seconds, seconds, kv_bytes,
                    static_cast<double>(weight_bytes + kv_bytes) * 1e-9 / seconds});
  }
  return report;
}

terminal::PlotPanel speed_plot(const std::vector<std::uint32_t>& depths,
                               const std::vector<std::vector<double>>& step_seconds) {
  terminal::PlotPanel panel = {.title = "Decode of one sequence",
                               .x_title = "context tokens before decoding",
                               .y_title = "tokens/s",
                               .ticks = {},
                               .lines = {{.name = "tokens/s", .points = {}}},
                               .linear_x = true};
  for (std::size_t i = 0; i < depths.size(); ++i) {
    panel.ticks.push_back(
        {.x = static_cast<double>(depths[i]), .text = fmt::format("{}", depths[i])});
    panel.lines[0].points.push_back(
        {.x = static_cast<double>(depths[i]), .y = 1 / median(step_seconds[i])});
  }
  return panel;
}

}  // namespace

Result<terminal::BenchReport> bench_depth(const BenchDepthOptions& options, const BenchRun& run) {
  if (!options.plot.empty()) RETURN_IF_ERROR(terminal::write_plot(options.plot, {}));
  ASSIGN_OR_RETURN(const engine::BackendOptions backend, run.backend_options(1));
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> engine,
                   BenchEngine::create(*model, run, backend));
  const std::vector<std::uint32_t> depths =
      options.depths.empty() ? depths_to(engine->context_tokens(), options.new_tokens)
                             : options.depths;
  const std::uint32_t deepest = *std::max_element(depths.begin(), depths.end());
  RETURN_IF_ERROR(app::check_context(
      fmt::format("`depths={}` and `new_tokens={}`", deepest, options.new_tokens),
      std::uint64_t{prompt_tokens(deepest)} + options.new_tokens, engine->context_tokens()));

  // Prompts are prefixes of one text: each goes on from what the cache has of those before it.
  const std::vector<TokenId> text = random_prompt(engine->vocabulary(), prompt_tokens(deepest), 1);
  std::vector<std::vector<double>> step_seconds(depths.size());
  terminal::ProgressBar progress("depths", "measured", run.clock());
  std::uint64_t measured = 0;
  for (std::uint32_t repeat = 0; repeat < options.repeats; ++repeat) {
    for (std::size_t i = 0; i < depths.size(); ++i) {
      const std::vector<TokenId> prompt(text.begin(), text.begin() + prompt_tokens(depths[i]));
      ASSIGN_OR_RETURN(const double seconds,
                       decode_step_seconds(*engine, {prompt}, options.new_tokens));
      step_seconds[i].push_back(seconds);
      progress.show(++measured, options.repeats * depths.size());
    }
  }
  if (!options.plot.empty()) {
    RETURN_IF_ERROR(
        terminal::write_plot(options.plot, std::array{speed_plot(depths, step_seconds)}));
  }
  return report_of(options, run, *model, depths, step_seconds);
}

}  // namespace pagoda::bench
