// pagoda bench perplexity: the perplexity of a model on a text (app/perplexity.h).
#include "app/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "app/decode_traffic.h"
#include "app/synthetic_request.h"
#include "bench/benchmarks.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error{ErrorCode::kIo, fmt::format("`file` {}: cannot be read", path)};
  return text.str();
}

// One window at a time, and the token behind it that is sampled and never read.
Result<std::unique_ptr<engine::Backend>> backend_of(const app::LoadedModel& model,
                                                    const BenchRun& run, std::uint32_t tokens) {
  ASSIGN_OR_RETURN(engine::BackendOptions options, run.backend_options(1));
  options.context_tokens = std::uint64_t{tokens} + 1;
  options.prefix_caching = false;
  // Room for the window whatever its blocks waste.
  options.kv_bytes = 2 * (options.context_tokens + options.block_tokens) *
                     app::kv_bytes_per_token(model.config(), kv::memory::Element::kF32);
  options.on_pack = model.pack_progress();
  return app::create_backend(run.options().device, model.config(), model.weights(), run.kernels(),
                             options);
}

}  // namespace

Result<terminal::BenchReport> bench_perplexity(const BenchPerplexityOptions& options,
                                               const BenchRun& run) {
  ASSIGN_OR_RETURN(const std::string text, read_text(options.file));
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  RETURN_IF_ERROR(app::check_context(fmt::format("`context={}`", options.context_tokens),
                                     options.context_tokens, model->config().context));
  const text::Tokenizer& tokenizer = model->tokenizer();
  const std::vector<TokenId> tokens = tokenizer.encode(text, {.add_bos_eos = true});
  const std::size_t windows =
      std::min<std::size_t>(options.windows_max, tokens.size() / options.context_tokens);
  if (windows == 0) {
    return Error{
        ErrorCode::kOutOfRange,
        fmt::format("`file` {}: its {} tokens are less than one window of {} (`context={}`)",
                    options.file, tokens.size(), options.context_tokens, options.context_tokens)};
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<engine::Backend> backend,
                   backend_of(*model, run, options.context_tokens));
  run.note_backend(*backend);

  terminal::BenchReport report("perplexity", {{"windows", "windows"},
                                              {"scored_tokens", "scored"},
                                              {"perplexity", "perplexity", 4},
                                              {"standard_error", "+-", 4}});
  run.add_settings(report);
  report.add_setting("file", options.file);
  report.add_setting("context_tokens", options.context_tokens);
  terminal::ProgressBar progress("windows", "read", run.clock());
  ASSIGN_OR_RETURN(
      const std::vector<float> scores,
      app::score_windows(
          *backend, tokenizer, tokens,
          {.tokens = options.context_tokens,
           .windows = windows,
           .on_window = [&](std::size_t done, std::size_t all) { progress.show(done, all); },
           .cancelled = [&] { return run.interrupted(); }},
          run.clock()));
  const app::Perplexity perplexity = app::perplexity_of(scores);
  report.add_row({windows, scores.size(), perplexity.value, perplexity.error});
  return report;
}

}  // namespace pagoda::bench
