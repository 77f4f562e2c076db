#include "bench/tutorial_toy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/cache_figures.h"
#include "bench/plain_attention.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

// So many values of an output are shown; tutorials have 8.
constexpr std::size_t kShownValues = 8;

struct TutorialSide {
  std::vector<double> seconds;
  std::vector<double> first_seconds;  // of the prompt, without a cache together with a new vector
  std::vector<float> outputs;         // of each new vector
  std::uint64_t rows_computed = 0;    // a repeat
};

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

class Tutorial {
 public:
  Tutorial(const BenchCacheOptions& options, const BenchRun& run)
      : options_(options),
        run_(run),
        width_(options.hidden_size),
        attention_(width_, options.seed) {
    const std::size_t tokens = std::size_t{options.prompt_tokens} + options.new_tokens;
    for (std::size_t i = 0; i < tokens * width_; ++i) {
      inputs_.push_back(static_cast<float>(2 * random_unit(options.seed, 1, i) - 1));
    }
  }

  Result<TutorialSide> measure(bool kv_cache) const {
    TutorialSide side;
    for (std::uint32_t i = 0; i <= options_.repeats; ++i) {
      const std::int64_t start_ns = run_.clock().now_ns();
      std::int64_t first_ns = start_ns;
      RETURN_IF_ERROR(kv_cache ? with_cache(side, first_ns) : without_cache(side, first_ns));
      if (i == 0) continue;  // a warm-up
      side.seconds.push_back(seconds_between(start_ns, run_.clock().now_ns()));
      side.first_seconds.push_back(seconds_between(start_ns, first_ns));
    }
    return side;
  }

  terminal::BenchReport report(const TutorialSide& naive, const TutorialSide& cached) const {
    terminal::BenchReport report("cache", {{"kv_cache", "KV cache"},
                                           {"seconds", "seconds", 4},
                                           {"first_token_seconds", "first s", 4},
                                           {"tokens_per_second", "vectors/s", 2},
                                           {"rows_computed", "vectors computed"},
                                           {"repeats", "repeats"}});
    report.add_setting("model", fmt::format("the tutorials' toy: one head of width {}, Q, K and V "
                                            "projections alone, fp32, one thread",
                                            width_));
    report.add_setting("prompt_tokens", options_.prompt_tokens);
    report.add_setting("new_tokens", options_.new_tokens);
    const auto add_side = [&](const char* name, const TutorialSide& side) {
      report.add_row({name, mean_of(side.seconds), mean_of(side.first_seconds),
                      options_.new_tokens / mean_of(side.seconds), side.rows_computed,
                      side.seconds.size()});
    };
    add_side("without", naive);
    add_side("with", cached);
    const double speedup = mean_of(naive.seconds) / mean_of(cached.seconds);
    report.add_figure("speedup", speedup, fmt::format("speed-up {:.2f}x, of means", speedup));
    const std::uint64_t tokens = std::uint64_t{options_.prompt_tokens} + options_.new_tokens;
    add_cache_figures(report, fmt::format("({}, {})", tokens, width_),
                      largest_difference(naive.outputs, cached.outputs), "outputs");
    add_output(report, tokens, cached);
    return report;
  }

 private:
  // Adds the shape of inputs and outputs, and the output of the last vector.
  void add_output(terminal::BenchReport& report, std::uint64_t tokens,
                  const TutorialSide& side) const {
    const std::string shape = fmt::format("({}, {})", tokens, width_);
    report.add_figure("output_shape", shape, fmt::format("inputs and outputs: {} each", shape));
    const auto last = std::span(side.outputs).last(width_);
    const auto shown = last.first(std::min(width_, kShownValues));
    report.add_figure("last_output", std::vector<double>(last.begin(), last.end()),
                      fmt::format("output of the last vector: {:.4f}{}", fmt::join(shown, " "),
                                  shown.size() < width_ ? " …" : ""));
  }

  std::span<const float> vectors(std::size_t begin, std::size_t end) const {
    return std::span(inputs_).subspan(begin * width_, (end - begin) * width_);
  }
  void keep_last(const std::vector<float>& outputs, TutorialSide& side) const {
    side.outputs.insert(side.outputs.end(), outputs.end() - static_cast<std::ptrdiff_t>(width_),
                        outputs.end());
  }

  Status without_cache(TutorialSide& side, std::int64_t& first_ns) const {
    terminal::ProgressBar progress("without the cache", "vectors", run_.clock());
    side.outputs.clear();
    side.rows_computed = 0;
    for (std::uint32_t made = 1; made <= options_.new_tokens; ++made) {
      PlainAttention::Cache none;
      const std::size_t tokens = std::size_t{options_.prompt_tokens} + made;
      keep_last(attention_.forward(vectors(0, tokens), none), side);
      side.rows_computed += tokens;
      if (made == 1) first_ns = run_.clock().now_ns();
      progress.show(made, options_.new_tokens);
      RETURN_IF_ERROR(run_.check_interrupt());
    }
    return ok_status();
  }

  Status with_cache(TutorialSide& side, std::int64_t& first_ns) const {
    side.outputs.clear();
    PlainAttention::Cache cache;
    const std::size_t prompt = options_.prompt_tokens;
    (void)attention_.forward(vectors(0, prompt), cache);
    first_ns = run_.clock().now_ns();
    for (std::size_t at = prompt; at < prompt + options_.new_tokens; ++at) {
      keep_last(attention_.forward(vectors(at, at + 1), cache), side);
    }
    side.rows_computed = prompt + options_.new_tokens;
    return run_.check_interrupt();
  }

  const BenchCacheOptions& options_;
  const BenchRun& run_;
  const std::size_t width_;
  const PlainAttention attention_;
  std::vector<float> inputs_;  // [token][width]
};

}  // namespace

Result<terminal::BenchReport> bench_tutorial(const BenchCacheOptions& options,
                                             const BenchRun& run) {
  const Tutorial tutorial(options, run);
  ASSIGN_OR_RETURN(const TutorialSide naive, tutorial.measure(false));
  ASSIGN_OR_RETURN(const TutorialSide cached, tutorial.measure(true));
  return tutorial.report(naive, cached);
}

}  // namespace pagoda::bench
