// pagoda bench gpu: prefill and decode of a named shape on a GPU, with random weights.
#include <fmt/format.h>

#include <algorithm>

#include "app/kv_dtype.h"
#include "app/random_shapes.h"
#include "bench/bench_engine.h"
#include "bench/benchmarks.h"
#include "bench/decode.h"
#include "bench/samples.h"
#include "engine/backends/gpu_backend.h"
#include "speculate/recorded_drafter.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

Result<std::unique_ptr<engine::Backend>> make_backend(const BenchGpuOptions& options,
                                                      const BenchRun& run,
                                                      const model::Config& config,
                                                      speculate::Drafter* drafter) {
  std::uint32_t largest = 1;
  for (const std::uint32_t size : options.batch_sizes) largest = std::max(largest, size);
  for (const std::uint32_t size : options.draft_batch_sizes) largest = std::max(largest, size);
  ASSIGN_OR_RETURN(engine::BackendOptions backend, run.backend_options(largest));
  backend.model_name = options.shape;
  backend.drafter = drafter;
  backend.block_tokens = 16;
  std::uint32_t context = options.prompt_tokens + options.new_tokens;
  for (const std::uint32_t tokens : options.depths) {
    context = std::max(context, tokens + options.new_tokens);
  }
  for (const std::uint32_t tokens : options.prefills) context = std::max(context, tokens + 2);
  backend.context_tokens = context;
  ASSIGN_OR_RETURN(const gguf::TensorType type, app::random_weight_type(options.weights));
  return engine::create_gpu_backend(config, engine::RandomWeights{.type = type}, run.kernels(),
                                    backend, {.blocks = {}, .graphs = !options.no_graphs});
}

// Tokens of a prompt per second until its first output token.
Result<double> prefill_rate(BenchEngine& engine, std::uint32_t tokens, std::uint64_t seed) {
  ASSIGN_OR_RETURN(
      const TimedOutput answer,
      engine.generate(fixed_request(random_prompt(engine.vocabulary(), tokens, seed), 1)));
  return static_cast<double>(tokens) / answer.record.first_token_s();
}

struct BatchOutput {
  std::vector<std::vector<TokenId>> tokens;
  double seconds = 0;  // from the last first token to the last token
};

// Decodes prompts that are in the cache.
Result<BatchOutput> decode_batch(BenchEngine& engine,
                                 const std::vector<std::vector<TokenId>>& prompts,
                                 std::uint32_t new_tokens, bool with_drafts) {
  std::vector<PendingRequest> pending;
  for (const std::vector<TokenId>& prompt : prompts) {
    engine::Request request = fixed_request(prompt, new_tokens);
    if (!with_drafts) request.draft_tokens_max = 0;
    ASSIGN_OR_RETURN(PendingRequest one, engine.submit(std::move(request)));
    pending.push_back(std::move(one));
  }
  BatchOutput output;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  for (const PendingRequest& one : pending) {
    ASSIGN_OR_RETURN(TimedOutput answer, engine.finish(one));
    begin_ns = std::max(begin_ns, answer.times_ns.front());
    end_ns = std::max(end_ns, answer.times_ns.back());
    output.tokens.push_back(std::move(answer.tokens));
  }
  output.seconds = seconds_between(begin_ns, end_ns);
  return output;
}

// Measures one batch in turn without drafts and with them.
Status measure_drafts(const BenchGpuOptions& options,
                      const std::vector<std::vector<TokenId>>& prompts, BenchEngine& engine,
                      speculate::RecordedDrafter& drafter, terminal::BenchReport& report) {
  const auto batch = static_cast<std::uint32_t>(prompts.size());
  for (const std::vector<TokenId>& prompt : prompts) {
    RETURN_IF_ERROR(engine.generate(fixed_request(prompt, 1)));
  }
  ASSIGN_OR_RETURN(const BatchOutput first,
                   decode_batch(engine, prompts, options.new_tokens, false));
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::vector<TokenId> all = prompts[i];
    all.insert(all.end(), first.tokens[i].begin(), first.tokens[i].end());
    drafter.record(std::move(all));
  }
  std::vector<double> plain;
  std::vector<double> drafted;
  // In the first rounds it is found out what rows cost.
  constexpr std::uint32_t kWarmUp = 2;
  for (std::uint32_t i = 0; i < options.repeats + kWarmUp; ++i) {
    ASSIGN_OR_RETURN(const BatchOutput off,
                     decode_batch(engine, prompts, options.new_tokens, false));
    ASSIGN_OR_RETURN(const BatchOutput on, decode_batch(engine, prompts, options.new_tokens, true));
    if (on.tokens != first.tokens || off.tokens != first.tokens) {
      return Error{ErrorCode::kCorrupt, fmt::format("drafts changed an answer, batch {}", batch)};
    }
    if (i < kWarmUp) continue;
    plain.push_back(off.seconds);
    drafted.push_back(on.seconds);
  }
  const auto add = [&](const char* work, double seconds) {
    const double tokens = static_cast<double>(batch) * (options.new_tokens - 1);
    report.add_row({work, batch, options.prompt_tokens, tokens / seconds,
                    seconds / static_cast<double>(options.new_tokens - 1)});
  };
  add("plain", median(plain));
  add("drafts", median(drafted));
  return ok_status();
}

Status measure(const BenchGpuOptions& options, BenchEngine& engine,
               speculate::RecordedDrafter& drafter, terminal::BenchReport& report) {
  std::uint64_t seed = 1;
  const auto prompts = [&](std::uint32_t count, std::uint32_t tokens) {
    std::vector<std::vector<TokenId>> made;
    for (std::uint32_t i = 0; i < count; ++i) {
      made.push_back(random_prompt(engine.vocabulary(), std::max(tokens, 1u), ++seed));
    }
    return made;
  };
  const auto decode = [&](const char* work, std::uint32_t batch, std::uint32_t depth) -> Status {
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < options.repeats; ++i) {
      ASSIGN_OR_RETURN(const double one,
                       decode_step_seconds(engine, prompts(batch, depth), options.new_tokens));
      seconds.push_back(one);
    }
    const double step = median(seconds);
    report.add_row({work, batch, depth, static_cast<double>(batch) / step, step});
    return ok_status();
  };
  // The first requests make graphs: they are not counted.
  RETURN_IF_ERROR(decode_step_seconds(engine, prompts(1, 16), options.new_tokens));
  for (const std::uint32_t depth : options.depths) RETURN_IF_ERROR(decode("depth", 1, depth));
  for (const std::uint32_t batch : options.batch_sizes) {
    RETURN_IF_ERROR(decode("batch", batch, options.prompt_tokens));
  }
  for (const std::uint32_t batch : options.draft_batch_sizes) {
    RETURN_IF_ERROR(
        measure_drafts(options, prompts(batch, options.prompt_tokens), engine, drafter, report));
  }
  for (const std::uint32_t tokens : options.prefills) {
    std::vector<double> rates;
    for (std::uint32_t i = 0; i <= options.repeats; ++i) {
      ASSIGN_OR_RETURN(const double rate, prefill_rate(engine, tokens, ++seed));
      if (i > 0) rates.push_back(rate);
    }
    const double rate = median(rates);
    report.add_row({"prefill", 1, tokens, rate, static_cast<double>(tokens) / rate});
  }
  return ok_status();
}

}  // namespace

Result<terminal::BenchReport> bench_gpu(const BenchGpuOptions& options, const BenchRun& run) {
  ASSIGN_OR_RETURN(const model::Config config, app::random_shape(options.shape));
  speculate::RecordedDrafter drafter({.wrong = options.draft_wrong,
                                      .tokens_max = options.draft_tokens,
                                      .vocabulary = config.vocabulary,
                                      .seed = 3,
                                      .weighs_costs = true});
  const std::int64_t begun = run.clock().now_ns();
  ASSIGN_OR_RETURN(
      std::unique_ptr<engine::Backend> backend,
      make_backend(options, run, config, options.draft_batch_sizes.empty() ? nullptr : &drafter));
  const double ready_s = seconds_between(begun, run.clock().now_ns());
  terminal::BenchReport report("gpu", {{"work", "work"},
                                       {"batch_size", "batch size"},
                                       {"tokens_before", "tokens before"},
                                       {"tokens_per_second", "tok/s", 1},
                                       {"seconds", "s", 6}});
  report.add_setting("device", backend->device_name());
  report.add_setting("shape", options.shape);
  report.add_setting("weights", options.weights);
  report.add_setting("kv_cache_dtype", app::kv_dtype_name(backend->page_layout().elements));
  report.add_setting("graphs", !options.no_graphs);
  report.add_setting("kv_cache_tokens", backend->kv_tokens());
  report.add_setting("ready_seconds", ready_s);
  report.add_setting("prompt_tokens", options.prompt_tokens);
  report.add_setting("new_tokens", options.new_tokens);
  if (!options.draft_batch_sizes.empty()) {
    report.add_setting("draft_tokens", options.draft_tokens);
    report.add_setting("draft_wrong", options.draft_wrong);
  }
  report.add_setting("repeats", options.repeats);
  const std::unique_ptr<BenchEngine> engine = BenchEngine::with_backend(run, std::move(backend));
  RETURN_IF_ERROR(measure(options, *engine, drafter, report));
  return report;
}

}  // namespace pagoda::bench
