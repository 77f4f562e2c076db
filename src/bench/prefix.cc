// pagoda bench prefix: questions behind one system prompt, with and without prefix caching.
#include <fmt/format.h>

#include "bench/bench_engine.h"
#include "bench/benchmarks.h"
#include "bench/samples.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

// All questions once, one after the other.
struct Pass {
  double first_token_seconds = 0;  // sums
  double total_seconds = 0;
  std::uint64_t prompt_tokens_computed = 0;
  std::vector<std::vector<TokenId>> answers;
};

// The same questions with prefix caching off, then on and warm.
struct Passes {
  Pass off;
  Pass on;
};

// One way of asking, over its repeats.
struct PrefixSide {
  std::vector<double> first_token_seconds;  // of outputs of one token
  std::vector<double> total_seconds;        // of whole outputs
  std::uint64_t prompt_tokens_computed = 0;

  void add(const Pass& first, const Pass& whole) {
    first_token_seconds.push_back(first.first_token_seconds);
    total_seconds.push_back(whole.total_seconds);
    prompt_tokens_computed = first.prompt_tokens_computed;
  }
};

class PrefixBench {
 public:
  PrefixBench(const BenchPrefixOptions& options, const BenchRun& run, BenchEngine& off,
              BenchEngine& on)
      : options_(options), run_(run), off_(off), on_(on) {}

  Result<terminal::BenchReport> measure() {
    RETURN_IF_ERROR(check_lengths());
    PrefixSide off;
    PrefixSide on;
    for (std::uint32_t i = 0; i < options_.repeats; ++i) {
      ASSIGN_OR_RETURN(const Passes first, measure_both(1));
      ASSIGN_OR_RETURN(const Passes whole, measure_both(options_.new_tokens));
      off.add(first.off, whole.off);
      on.add(first.on, whole.on);
    }
    return report(off, on);
  }

 private:
  Status check_lengths() const {
    const std::uint64_t tokens =
        std::uint64_t{options_.system_tokens} + options_.question_tokens + options_.new_tokens;
    RETURN_IF_ERROR(app::check_context(
        fmt::format("`system_tokens={}`, `question_tokens={}` and `new_tokens={}`",
                    options_.system_tokens, options_.question_tokens, options_.new_tokens),
        tokens, std::min(off_.context_tokens(), on_.context_tokens())));
    if (options_.questions < on_.vocabulary()) return ok_status();
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`questions`: {} questions and the one that warms the cache begin "
                             "with tokens of their own, but the vocabulary has {}",
                             options_.questions, on_.vocabulary())};
  }

  // Question `index` behind the system prompt. Questions share no token at their beginning, so that
  // the system prompt is exactly what the cache can give.
  std::vector<TokenId> prompt(std::uint32_t index) const {
    std::vector<TokenId> tokens = random_prompt(on_.vocabulary(), options_.system_tokens, 1);
    std::vector<TokenId> question =
        random_prompt(on_.vocabulary(), options_.question_tokens, 2 + index);
    question.front() = TokenId(index);
    tokens.insert(tokens.end(), question.begin(), question.end());
    return tokens;
  }

  Result<Passes> measure_both(std::uint32_t new_tokens) {
    // A salt of its own: nothing is found of what other passes have left in the cache.
    const std::string salt = fmt::format("passes {}", ++passes_);
    Passes passes;
    ASSIGN_OR_RETURN(passes.off, measure_pass(off_, new_tokens, salt, "prefix caching off"));
    RETURN_IF_ERROR(ask(on_, options_.questions, 1, salt));  // warms the cache
    ASSIGN_OR_RETURN(passes.on, measure_pass(on_, new_tokens, salt, "prefix caching on"));
    if (passes.off.answers != passes.on.answers) {
      return Error{ErrorCode::kCorrupt, "the outputs with and without prefix caching differ"};
    }
    return passes;
  }

  Result<TimedOutput> ask(BenchEngine& engine, std::uint32_t question, std::uint32_t new_tokens,
                          const std::string& salt) const {
    engine::Request request = fixed_request(prompt(question), new_tokens);
    request.cache_salt = salt;
    return engine.generate(std::move(request));
  }

  Result<Pass> measure_pass(BenchEngine& engine, std::uint32_t new_tokens, const std::string& salt,
                            const std::string& label) const {
    Pass pass;
    terminal::ProgressBar progress(label, "questions", run_.clock());
    for (std::uint32_t i = 0; i < options_.questions; ++i) {
      ASSIGN_OR_RETURN(TimedOutput answer, ask(engine, i, new_tokens, salt));
      pass.first_token_seconds += answer.record.first_token_s();
      pass.total_seconds += answer.record.total_s();
      pass.prompt_tokens_computed += answer.record.prompt_tokens_computed;
      pass.answers.push_back(std::move(answer.tokens));
      progress.show(i + 1, options_.questions);
    }
    return pass;
  }

  terminal::BenchReport report(const PrefixSide& off, const PrefixSide& on) const {
    terminal::BenchReport report("prefix", {{"prefix_caching", "prefix caching"},
                                            {"first_token_seconds", "sum of TTFT s", 4},
                                            {"total_seconds", "sum of E2E latency s", 4},
                                            {"prompt_tokens_computed", "prompt tokens computed"}});
    run_.add_settings(report);
    report.add_setting("questions", options_.questions);
    report.add_setting("system_tokens", options_.system_tokens);
    report.add_setting("question_tokens", options_.question_tokens);
    report.add_setting("new_tokens", options_.new_tokens);
    report.add_setting("repeats", options_.repeats);
    for (const auto& [name, side] : {std::pair{"off", &off}, {"on, warm", &on}}) {
      report.add_row({name, median(side->first_token_seconds), median(side->total_seconds),
                      side->prompt_tokens_computed});
    }
    const double speedup = median(off.first_token_seconds) / median(on.first_token_seconds);
    const double end_to_end = median(off.total_seconds) / median(on.total_seconds);
    const std::uint64_t saved = off.prompt_tokens_computed - on.prompt_tokens_computed;
    report.add_figure("speedup", speedup,
                      fmt::format("TTFT {:.2f}x shorter, same tokens", speedup));
    report.add_figure(
        "speedup_end_to_end", end_to_end,
        fmt::format("E2E latency of {} tokens {:.2f}x shorter", options_.new_tokens, end_to_end));
    report.add_figure("prefill_tokens_saved", saved,
                      fmt::format("prefill tokens saved: {}", saved));
    return report;
  }

  const BenchPrefixOptions& options_;
  const BenchRun& run_;
  BenchEngine& off_;
  BenchEngine& on_;
  std::uint32_t passes_ = 0;
};

}  // namespace

Result<terminal::BenchReport> bench_prefix(const BenchPrefixOptions& options, const BenchRun& run) {
  ASSIGN_OR_RETURN(engine::BackendOptions backend, run.backend_options(1));
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  backend.prefix_caching = false;
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> off,
                   BenchEngine::create(*model, run, backend, {}, 0.5));
  backend.prefix_caching = true;
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> on,
                   BenchEngine::create(*model, run, backend));
  return PrefixBench(options, run, *off, *on).measure();
}

}  // namespace pagoda::bench
