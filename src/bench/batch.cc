// pagoda bench batch: tokens per second over batch sizes.
#include <fmt/format.h>

#include <algorithm>

#include "app/decode_traffic.h"
#include "bench/benchmarks.h"
#include "bench/decode.h"
#include "bench/samples.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

struct BatchOptions : BenchOptions {
  BatchOptions() { repeats = 3; }
  std::vector<std::uint32_t> batch_sizes = {1, 2, 4, 8, 16, 32, 64};
  std::uint32_t prompt_tokens = 128;
  std::uint32_t new_tokens = 32;
};

Result<terminal::BenchReport> report_of(const BatchOptions& options, const BenchRun& run,
                                        const app::LoadedModel& model,
                                        const std::vector<std::vector<double>>& step_seconds) {
  terminal::BenchReport report("batch", {{"batch_size", "batch size"},
                                         {"tokens_per_second", "tok/s", 1},
                                         {"tokens_per_second_each", "tok/s each", 1},
                                         {"step_seconds", "step s", 5},
                                         {"gigabytes_per_second", "GB/s", 2}});
  run.add_settings(report);
  report.add_setting("prompt_tokens", options.prompt_tokens);
  report.add_setting("new_tokens", options.new_tokens);
  report.add_setting("repeats", options.repeats);
  const std::uint64_t weight_bytes = app::weight_bytes_read(model.weights());
  const std::uint64_t kv_bytes = app::kv_bytes_read(model.config(), run.kv_element(),
                                                    options.prompt_tokens + options.new_tokens / 2);
  for (std::size_t i = 0; i < options.batch_sizes.size(); ++i) {
    const double seconds = median(step_seconds[i]);
    const std::uint64_t batch = options.batch_sizes[i];
    report.add_row({batch, static_cast<double>(batch) / seconds, 1 / seconds, seconds,
                    static_cast<double>(weight_bytes + batch * kv_bytes) * 1e-9 / seconds});
  }
  return report;
}

Result<terminal::BenchReport> bench_batch(const BatchOptions& options, const BenchRun& run) {
  const std::uint32_t largest =
      *std::max_element(options.batch_sizes.begin(), options.batch_sizes.end());
  ASSIGN_OR_RETURN(const engine::CpuBackendOptions backend, run.backend_options(largest));
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> engine,
                   BenchEngine::create(*model, run, backend));
  const std::uint64_t tokens = std::uint64_t{options.prompt_tokens} + options.new_tokens;
  RETURN_IF_ERROR(check_context(fmt::format("--prompt-tokens {} and --new-tokens {}",
                                            options.prompt_tokens, options.new_tokens),
                                tokens, engine->context_tokens()));
  RETURN_IF_ERROR(engine->check_room(tokens * largest));

  std::vector<std::vector<double>> step_seconds(options.batch_sizes.size());
  terminal::ProgressBar progress("batches", "measured", run.clock());
  std::uint64_t measured = 0;
  for (std::uint32_t repeat = 0; repeat < options.repeats; ++repeat) {
    for (std::size_t i = 0; i < options.batch_sizes.size(); ++i) {
      std::vector<std::vector<TokenId>> prompts;
      for (std::uint32_t p = 0; p < options.batch_sizes[i]; ++p) {
        prompts.push_back(random_prompt(engine->vocabulary(), options.prompt_tokens, p));
      }
      ASSIGN_OR_RETURN(const double seconds,
                       decode_step_seconds(*engine, prompts, options.new_tokens));
      step_seconds[i].push_back(seconds);
      progress.show(++measured, options.repeats * options.batch_sizes.size());
    }
  }
  return report_of(options, run, *model, step_seconds);
}

constexpr const char* kExamples =
    "Examples:\n"
    "  pagoda bench batch\n"
    "  pagoda bench batch model.gguf --batch-sizes 1,8 --prompt-tokens 512 --json\n"
    "Only steps in which all sequences decode are measured. GB/s = (weight bytes + batch size x KV "
    "bytes of prompt + half the output) / step time: every weight matrix counts once a step, keys "
    "and values once for each sequence.";

}  // namespace

void add_bench_batch(const BenchCommand& bench) {
  CLI::App* const command = bench.app.add_subcommand("batch", "tokens per second over batch sizes");
  const auto options = std::make_shared<BatchOptions>();
  add_engine_options(*command, *options);
  add_repeats_option(*command, *options);
  add_batched_tokens_option(*command, *options);
  command
      ->add_option("--batch-sizes", options->batch_sizes,
                   "sequences that decode together, 1 to 512, with commas (default "
                   "1,2,4,8,16,32,64)")
      ->delimiter(',')
      ->check(CLI::Range(1u, 512u));
  add_count_option(*command, "--prompt-tokens", options->prompt_tokens,
                   "tokens of each prompt: the depth at which decoding begins");
  add_count_option(*command, "-n,--new-tokens", options->new_tokens, "new tokens of each sequence",
                   2);
  command->footer(kExamples);
  set_benchmark(*command, bench, options,
                [options](const BenchRun& run) { return bench_batch(*options, run); });
}

}  // namespace pagoda::bench
