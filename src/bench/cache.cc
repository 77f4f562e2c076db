// pagoda bench cache: one sequence with the KV cache, and the same computed anew for every token.
#include <fmt/format.h>

#include "bench/bench_engine.h"
#include "bench/benchmarks.h"
#include "bench/cache_figures.h"
#include "bench/samples.h"
#include "bench/toy_model.h"
#include "engine/single_sequence.h"
#include "model/kv_groups.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

constexpr double kNaiveSecondsMax = 60;

// One way to generate, over its repeats.
struct CacheSide {
  std::vector<double> seconds;
  std::vector<double> first_token_seconds;
  engine::SingleOutput answer;  // the last
};

class CacheBench {
 public:
  CacheBench(const BenchCacheOptions& options, const BenchRun& run, const model::Config& config,
             const model::Weights& weights)
      : options_(options),
        run_(run),
        pool_(options.threads),
        decoder_(
            config, weights, run.kernels(), pool_,
            {.rows_max = options.batched_tokens_max, .kv_cache_dtype = options.kv_cache_dtype}) {}

  Result<terminal::BenchReport> measure() {
    const std::uint64_t tokens = std::uint64_t{options_.prompt_tokens} + options_.new_tokens;
    RETURN_IF_ERROR(app::check_context(fmt::format("`prompt_tokens={}` and `new_tokens={}`",
                                                   options_.prompt_tokens, options_.new_tokens),
                                       tokens, decoder_.config().context));
    RETURN_IF_ERROR(answer(true, 1));  // the weights are in memory from here on
    ASSIGN_OR_RETURN(const CacheSide cached, measure_side(true));
    ASSIGN_OR_RETURN(const CacheSide naive, measure_side(false));
    if (cached.answer.tokens != naive.answer.tokens) {
      return Error{ErrorCode::kCorrupt, "the outputs with and without the KV cache differ"};
    }
    terminal::BenchReport result = report(naive, cached);
    if (options_.toy) RETURN_IF_ERROR(add_toy_figures(result));
    return result;
  }

 private:
  // Adds the figures that tutorials print of their toys. Every token but the last new one is in
  // the cache.
  Status add_toy_figures(terminal::BenchReport& report) {
    const std::uint32_t tokens = options_.prompt_tokens + options_.new_tokens;
    const model::Config& config = decoder_.config();
    ASSIGN_OR_RETURN(const double difference,
                     logit_difference(decoder_, random_prompt(config.vocabulary, tokens, 1)));
    add_cache_figures(report,
                      fmt::format("({}, {}, {})", config.kv_heads, tokens - 1, config.key_dim),
                      difference, "logits");
    return ok_status();
  }

  Result<engine::SingleOutput> answer(bool kv_cache, std::uint32_t new_tokens) {
    terminal::ProgressBar progress(kv_cache ? "with the cache" : "without the cache", "tokens",
                                   run_.clock());
    std::uint32_t tokens_done = 0;
    engine::SingleRequest request;
    request.prompt = random_prompt(decoder_.config().vocabulary, options_.prompt_tokens, 1);
    request.tokens_max = new_tokens;
    request.context_max = decoder_.config().context;
    request.kv_cache = kv_cache;
    request.on_token = [&](TokenId) { progress.show(++tokens_done, new_tokens); };
    request.cancelled = [&] { return run_.interrupted(); };
    ASSIGN_OR_RETURN(engine::SingleOutput answer,
                     engine::generate_single(decoder_, request, run_.clock()));
    RETURN_IF_ERROR(run_.check_interrupt());
    return answer;
  }

  Result<CacheSide> measure_side(bool kv_cache) {
    CacheSide side;
    const std::int64_t start_ns = run_.clock().now_ns();
    for (std::uint32_t i = 0; i < options_.repeats; ++i) {
      const double spent = seconds_between(start_ns, run_.clock().now_ns());
      if (!kv_cache && i > 0 && spent + side.seconds.back() > kNaiveSecondsMax) break;
      ASSIGN_OR_RETURN(side.answer, answer(kv_cache, options_.new_tokens));
      side.seconds.push_back(side.answer.first_token_s + side.answer.decode_s);
      side.first_token_seconds.push_back(side.answer.first_token_s);
    }
    return side;
  }

  terminal::BenchReport report(const CacheSide& naive, const CacheSide& cached) const {
    terminal::BenchReport report("cache", {{"kv_cache", "KV cache"},
                                           {"seconds", "seconds", 4},
                                           {"first_token_seconds", "TTFT s", 4},
                                           {"tokens_per_second", "tok/s", 2},
                                           {"rows_computed", "tokens computed"},
                                           {"repeats", "repeats"}});
    run_.add_settings(report);
    if (options_.toy) {
      report.add_setting("model",
                         fmt::format("toy: one attention layer of width {}", options_.hidden_size));
    }
    report.add_setting("prompt_tokens", options_.prompt_tokens);
    report.add_setting("new_tokens", options_.new_tokens);
    const auto add_side = [&](const char* name, const CacheSide& side) {
      const double seconds = median(side.seconds);
      report.add_row({name, seconds, median(side.first_token_seconds),
                      options_.new_tokens / seconds, side.answer.tokens_computed,
                      side.seconds.size()});
    };
    add_side("without", naive);
    add_side("with", cached);
    const double speedup = median(naive.seconds) / median(cached.seconds);
    report.add_figure("speedup", speedup, fmt::format("speed-up {:.2f}x, same tokens", speedup));
    return report;
  }

  const BenchCacheOptions& options_;
  const BenchRun& run_;
  ThreadPool pool_;
  model::Decoder decoder_;
};

}  // namespace

Result<terminal::BenchReport> bench_cache(const BenchCacheOptions& options, const BenchRun& run) {
  if (options.toy) {
    const ToyModel toy(options.prompt_tokens + options.new_tokens, options.hidden_size,
                       options.seed);
    RETURN_IF_ERROR(model::check_kv_cache_dtype(toy.config(), options.kv_cache_dtype));
    return CacheBench(options, run, toy.config(), toy.weights()).measure();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  RETURN_IF_ERROR(model::check_kv_cache_dtype(model->config(), options.kv_cache_dtype));
  return CacheBench(options, run, model->config(), model->weights()).measure();
}

}  // namespace pagoda::bench
