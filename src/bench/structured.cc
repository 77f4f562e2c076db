// pagoda bench structured: how long a grammar takes to be ready, and a mask over the vocabulary.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "app/mask_tokens.h"
#include "bench/benchmarks.h"
#include "bench/constrained_batch.h"
#include "bench/samples.h"
#include "bench/structured_cases.h"
#include "bench/tekken_tokens.h"
#include "structured/matcher.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

using structured::MaskVocabulary;
using structured::Matcher;

struct NamedVocabulary {
  std::string name;
  std::shared_ptr<const MaskVocabulary> tokens;
  double seconds = 0;  // that its trie took
};

bool is_vocabulary_alone(const BenchStructuredOptions& options) {
  return options.model.ends_with(".json");
}

constexpr std::uint32_t kBatchRoundsMax = 15;

// How fast a batch is with a grammar on `which` of its sequences, beside one without.
void add_batch(terminal::BenchReport& report, const std::string& which,
               const ConstrainedBatch::Rate& rate, const ConstrainedBatch::Rate& none) {
  report.add_figure("batch_" + which + "_constrained_ratio", rate.ratio,
                    fmt::format("batch {}, {} constrained: {:.1f} tok/s, {:.3f} of the {:.1f} "
                                "without a grammar, round by round",
                                kConstrainedBatch, which, rate.tokens_per_second, rate.ratio,
                                none.tokens_per_second));
}

Result<NamedVocabulary> load_vocabulary(const BenchStructuredOptions& options,
                                        const BenchRun& run) {
  NamedVocabulary vocabulary;
  if (is_vocabulary_alone(options)) {
    const std::int64_t began = run.clock().now_ns();
    ASSIGN_OR_RETURN(vocabulary.tokens, read_tekken(options.model));
    vocabulary.seconds = seconds_between(began, run.clock().now_ns());
  } else {
    ASSIGN_OR_RETURN(const gguf::File file, app::open_model_file(options.model));
    ASSIGN_OR_RETURN(const std::unique_ptr<text::Tokenizer> tokenizer,
                     text::Tokenizer::load(file.metadata()));
    const std::int64_t began = run.clock().now_ns();
    vocabulary.tokens = app::mask_vocabulary_of(*tokenizer, tokenizer->size());
    vocabulary.seconds = seconds_between(began, run.clock().now_ns());
  }
  const std::size_t slash = options.model.find_last_of('/');
  vocabulary.name = options.model.substr(slash == std::string::npos ? 0 : slash + 1);
  return vocabulary;
}

// The longest token that the text begins with, again and again: what a model would write, nearly.
std::vector<TokenId> longest_tokens(const MaskVocabulary& vocabulary, std::string_view text) {
  std::vector<TokenId> tokens;
  const auto nodes = vocabulary.trie().nodes();
  while (!text.empty()) {
    std::size_t bytes = 0;
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < nodes.size();) {
      const auto& node = nodes[i];
      if (node.depth > text.size() ||
          node.byte != static_cast<unsigned char>(text[node.depth - 1u])) {
        i = node.skip;
        continue;
      }
      if (node.number != structured::VocabularyTrie::kNoNumber) {
        bytes = node.depth;
        found = node.number;
      }
      ++i;
    }
    if (bytes == 0) return {};
    tokens.push_back(TokenId(found));
    text.remove_prefix(bytes);
  }
  return tokens;
}

struct CaseTimes {
  std::vector<double> ready;  // seconds
  std::vector<double> masks;  // seconds each
};

Result<CaseTimes> measure(const StructuredCase& one, const NamedVocabulary& vocabulary,
                          std::uint32_t repeats, const BenchRun& run) {
  CaseTimes times;
  std::vector<structured::MaskWord> mask(vocabulary.tokens->words());
  const std::vector<TokenId> answer = longest_tokens(*vocabulary.tokens, one.answer);
  for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
    RETURN_IF_ERROR(run.check_interrupt());
    std::int64_t began = run.clock().now_ns();
    ASSIGN_OR_RETURN(const std::shared_ptr<const structured::Grammar> grammar, one.make());
    Matcher matcher(grammar, vocabulary.tokens);
    times.ready.push_back(seconds_between(began, run.clock().now_ns()));
    for (const TokenId token : answer) {
      began = run.clock().now_ns();
      RETURN_IF_ERROR(matcher.fill_mask(mask));
      times.masks.push_back(seconds_between(began, run.clock().now_ns()));
      RETURN_IF_ERROR(matcher.accept(token));
    }
    RETURN_IF_ERROR(matcher.fill_mask(mask));
  }
  return times;
}

}  // namespace

Result<terminal::BenchReport> bench_structured(const BenchStructuredOptions& options,
                                               const BenchRun& run) {
  ASSIGN_OR_RETURN(const NamedVocabulary vocabulary, load_vocabulary(options, run));
  terminal::BenchReport report("structured", {{"grammar", "grammar"},
                                              {"ready_microseconds", "ready us", 0},
                                              {"masks", "masks"},
                                              {"mask_p50_microseconds", "mask p50 us", 1},
                                              {"mask_p90_microseconds", "p90", 1},
                                              {"mask_p99_microseconds", "p99", 1},
                                              {"mask_max_microseconds", "max", 1}});
  report.add_setting("vocabulary", vocabulary.name);
  report.add_setting("tokens", static_cast<std::uint64_t>(vocabulary.tokens->size()));
  report.add_setting("repeats", options.repeats);
  terminal::ProgressBar progress("grammars", "measured", run.clock());
  const std::vector<StructuredCase> cases = structured_cases();
  std::vector<double> all;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ASSIGN_OR_RETURN(CaseTimes times, measure(cases[i], vocabulary, options.repeats, run));
    const auto mask = [&](double share) { return percentile(times.masks, share) * 1e6; };
    report.add_row({cases[i].name, median(times.ready) * 1e6,
                    static_cast<std::uint64_t>(times.masks.size() / options.repeats), mask(0.5),
                    mask(0.9), mask(0.99), mask(1)});
    all.insert(all.end(), times.masks.begin(), times.masks.end());
    progress.show(i + 1, cases.size());
  }
  const double p90 = percentile(all, 0.9) * 1e6;
  report.add_figure("mask_p90_microseconds", p90,
                    fmt::format("mask p90 over all grammars: {:.1f} us", p90));
  report.add_figure(
      "trie_seconds", vocabulary.seconds,
      fmt::format("the vocabulary took {:.0f} ms, once at load", vocabulary.seconds * 1e3));
  if (is_vocabulary_alone(options)) return report;
  ASSIGN_OR_RETURN(const ConstrainedBatch batch,
                   measure_constrained_batch(run, vocabulary.tokens,
                                             std::min(options.repeats, kBatchRoundsMax)));
  add_batch(report, "one", batch.one, batch.none);
  add_batch(report, "all", batch.all, batch.none);
  return report;
}

}  // namespace pagoda::bench
