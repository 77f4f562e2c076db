// pagoda bench perplexity: the perplexity of a model on a text, by the method others publish.
//
// The text is cut into windows of --context tokens, the first token of each replaced by the model's
// first one where it wants one. Each window is read alone; of its second half every token is
// scored.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "app/synthetic_request.h"
#include "bench/benchmarks.h"
#include "model/decoder.h"
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

// Windows one after another over the same pages.
class WindowReader {
 public:
  static Result<WindowReader> create(const app::LoadedModel& model, const BenchRun& run,
                                     ThreadPool& pool, std::uint32_t tokens) {
    auto decoder = std::make_unique<model::Decoder>(
        model.config(), model.weights(), run.kernels(), pool,
        model::DecoderOptions{.rows_max = tokens,
                              .kv_element = run.options().kv_element,
                              .on_pack = model.pack_progress()});
    const std::uint32_t per_block = decoder->page_layout().block_tokens;
    const auto groups = static_cast<std::uint32_t>(decoder->group_plan().groups.size());
    const std::uint32_t blocks = (tokens + per_block - 1) / per_block;
    ASSIGN_OR_RETURN(kv::memory::PageBuffer pages,
                     kv::memory::PageBuffer::allocate(decoder->page_layout(), blocks * groups));
    return WindowReader(std::move(decoder), std::move(pages), blocks);
  }

  // The logarithm of the probability of each token of the second half but its first.
  std::vector<double> scores_of(std::span<const TokenId> tokens) {
    const std::size_t groups = decoder_->group_plan().groups.size();
    std::vector<kv::memory::BlockTable> tables;
    for (std::size_t group = 0; group < groups; ++group) {
      tables.push_back(blocks_.data() + group * blocks_each_);
    }
    const model::SequenceRows rows = {static_cast<std::uint32_t>(tokens.size()), 0, tables};
    decoder_->forward({tokens, {&rows, 1}, {}}, pages_, nullptr);
    const std::size_t vocabulary = decoder_->config().vocabulary;
    std::vector<double> scores;
    constexpr std::uint32_t kRowsTogether = 64;
    for (auto first = static_cast<std::uint32_t>(tokens.size() / 2); first + 1 < tokens.size();
         first += kRowsTogether) {
      std::vector<std::uint32_t> wanted;
      for (std::uint32_t row = first; row + 1 < tokens.size() && row < first + kRowsTogether;
           ++row) {
        wanted.push_back(row);
      }
      logits_.resize(wanted.size() * vocabulary);
      decoder_->logits(wanted, logits_.data());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        scores.push_back(log_probability({logits_.data() + i * vocabulary, vocabulary},
                                         tokens[wanted[i] + 1].value()));
      }
    }
    return scores;
  }

 private:
  WindowReader(std::unique_ptr<model::Decoder> decoder, kv::memory::PageBuffer pages,
               std::uint32_t blocks_each)
      : decoder_(std::move(decoder)), pages_(std::move(pages)), blocks_each_(blocks_each) {
    for (std::uint32_t block = 0; block < pages_.pages(); ++block) blocks_.emplace_back(block);
  }

  static double log_probability(std::span<const float> logits, std::size_t token) {
    const double best = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - best);
    return logits[token] - best - std::log(sum);
  }

  std::unique_ptr<model::Decoder> decoder_;
  kv::memory::PageBuffer pages_;
  std::uint32_t blocks_each_;  // of one group
  std::vector<kv::BlockId> blocks_;
  std::vector<float> logits_;
};

// Perplexity and the standard error of its estimate.
struct Perplexity {
  double value;
  double error;
};
Perplexity perplexity_of(const std::vector<double>& scores) {
  const auto count = static_cast<double>(scores.size());
  double sum = 0;
  double squares = 0;
  for (const double score : scores) {
    sum += score;
    squares += score * score;
  }
  const double mean = sum / count;
  const double value = std::exp(-mean);
  const double deviation = std::sqrt(std::max(0.0, squares / count - mean * mean));
  return {value, value * deviation / std::sqrt(std::max(1.0, count - 1))};
}

}  // namespace

Result<terminal::BenchReport> bench_perplexity(const BenchPerplexityOptions& options,
                                               const BenchRun& run) {
  ASSIGN_OR_RETURN(const std::string text, read_text(options.file));
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  RETURN_IF_ERROR(app::check_context(fmt::format("`context={}`", options.context_tokens),
                                     options.context_tokens, model->config().context));
  const text::Tokenizer& tokenizer = model->tokenizer();
  std::vector<TokenId> tokens = tokenizer.encode(text, {.add_bos_eos = true});
  const std::size_t windows =
      std::min<std::size_t>(options.windows_max, tokens.size() / options.context_tokens);
  if (windows == 0) {
    return Error{
        ErrorCode::kOutOfRange,
        fmt::format("`file` {}: its {} tokens are less than one window of {} (`context={}`)",
                    options.file, tokens.size(), options.context_tokens, options.context_tokens)};
  }
  ThreadPool pool(options.threads);
  ASSIGN_OR_RETURN(WindowReader reader,
                   WindowReader::create(*model, run, pool, options.context_tokens));

  terminal::BenchReport report("perplexity", {{"windows", "windows"},
                                              {"scored_tokens", "scored"},
                                              {"perplexity", "perplexity", 4},
                                              {"standard_error", "+-", 4}});
  run.add_settings(report);
  report.add_setting("file", options.file);
  report.add_setting("context_tokens", options.context_tokens);
  std::vector<double> scores;
  terminal::ProgressBar progress("windows", "read", run.clock());
  for (std::size_t window = 0; window < windows; ++window) {
    RETURN_IF_ERROR(run.check_interrupt());
    const std::span<TokenId> part =
        std::span(tokens).subspan(window * options.context_tokens, options.context_tokens);
    if (tokenizer.add_bos() && tokenizer.bos()) part.front() = *tokenizer.bos();
    const std::vector<double> found = reader.scores_of(part);
    scores.insert(scores.end(), found.begin(), found.end());
    progress.show(window + 1, windows);
  }
  const Perplexity perplexity = perplexity_of(scores);
  report.add_row({windows, scores.size(), perplexity.value, perplexity.error});
  return report;
}

}  // namespace pagoda::bench
