// pagoda bench speculate: what draft tokens buy, by kind of draft, beside the same requests
// without.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "app/draft_model.h"
#include "app/mask_tokens.h"
#include "app/speculation.h"
#include "bench/benchmarks.h"
#include "bench/samples.h"
#include "bench/tenth_model.h"
#include "speculate/recorded_drafter.h"
#include "structured/matcher.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

using speculate::DraftMethod;

constexpr std::size_t kGramTokens = 8;
constexpr double kSharedLeast = 0.8;
constexpr std::array<std::uint32_t, 6> kCeilingDrafts = {1, 3, 5, 7, 15, 23};
constexpr std::size_t kPaidLengths = 4;  // of these: drafts of a model that costs

// Lines that differ, so that nothing in a line predicts the next but the text itself.
std::string copied_text(std::uint32_t lines) {
  constexpr std::array<const char*, 8> kThings = {"lamps",   "bells", "steps",   "tiles",
                                                  "bridges", "boats", "scrolls", "gardens"};
  constexpr std::array<const char*, 7> kPeople = {"monk",    "guard",  "mason",   "painter",
                                                  "pilgrim", "keeper", "gardener"};
  std::string text;
  for (std::uint32_t i = 1; i <= lines; ++i) {
    text += fmt::format("Line {}: the {} of tower {} counted {} {} and wrote it in book {}.\n", i,
                        kPeople[i * 5 % kPeople.size()], i * 7 % 31, i * 37 % 89,
                        kThings[i * 3 % kThings.size()], i * 53 % 97);
  }
  return text;
}

// Returns the share of the answer's 8-grams that the prompt has.
double shared_grams(const std::vector<TokenId>& prompt, const std::vector<TokenId>& answer) {
  const auto grams = [](const std::vector<TokenId>& tokens) {
    std::vector<std::vector<TokenId>> list;
    for (std::size_t i = 0; i + kGramTokens <= tokens.size(); ++i) {
      const auto at = tokens.begin() + static_cast<std::ptrdiff_t>(i);
      list.emplace_back(at, at + kGramTokens);
    }
    return list;
  };
  const auto known = grams(prompt);
  const std::set<std::vector<TokenId>> set(known.begin(), known.end());
  const auto asked = grams(answer);
  const auto found = std::count_if(asked.begin(), asked.end(),
                                   [&](const auto& gram) { return set.contains(gram); });
  return asked.empty() ? 0 : static_cast<double>(found) / static_cast<double>(asked.size());
}

// A kind of draft, and the request that it is measured with.
struct DraftCase {
  std::string name;
  std::vector<TokenId> prompt;
  float temperature = 0;
  speculate::MethodSet methods = {};
  speculate::Drafter* drafter = nullptr;  // instead of methods
  bool predicts = false;                  // the request brings the answer as its prediction
  std::string predicted = {};             // the text that it brings otherwise
  bool is_new = false;                    // nobody asked the same before, in its scope
  std::shared_ptr<const structured::Matcher> constraint = {};
};

// PaidDrafter drafts what a recorded answer says, and has a model compute each draft token before.
class PaidDrafter final : public speculate::Drafter {
 public:
  PaidDrafter(speculate::Drafter& recorded, TenthModel& model, const Clock& clock)
      : recorded_(recorded), model_(model), clock_(clock) {}

  speculate::Proposal propose(const speculate::DraftQuery& query,
                              speculate::SequenceDrafting& drafting,
                              std::span<TokenId> room) override {
    const speculate::Proposal proposal = recorded_.propose(query, drafting, room);
    if (proposal.tokens == 0) return proposal;
    const std::int64_t began = clock_.now_ns();
    if (const Status drafted = model_.draft(proposal.tokens); !drafted.ok()) failed_ = drafted;
    seconds_ += seconds_between(began, clock_.now_ns());
    ++drafts_;
    return proposal;
  }
  // Returns the seconds of a draft. Call this while no engine drafts.
  double seconds() const { return drafts_ == 0 ? 0 : seconds_ / static_cast<double>(drafts_); }
  const Status& status() const { return failed_; }

 private:
  speculate::Drafter& recorded_;
  TenthModel& model_;
  const Clock& clock_;
  Status failed_ = ok_status();
  double seconds_ = 0;
  std::uint64_t drafts_ = 0;
};

struct CaseResult {
  std::vector<double> on;  // tokens per second
  std::vector<double> off;
  engine::DraftCounts drafts;  // of one answer
  std::vector<TokenId> answer;
  bool is_equal = true;

  double ratio() const { return median(on) / median(off); }
  double acceptance() const {
    return drafts.tokens == 0
               ? 0
               : static_cast<double>(drafts.accepted) / static_cast<double>(drafts.tokens);
  }
  // Without the first token, which comes with the prompt.
  double tokens_per_step() const {
    const auto tokens = static_cast<double>(answer.size() - 1);
    return tokens / (tokens - static_cast<double>(drafts.accepted));
  }
  double step_seconds() const { return tokens_per_step() / median(on); }
};

class SpeculateBench {
 public:
  SpeculateBench(const BenchSpeculateOptions& options, const BenchRun& run,
                 const app::LoadedModel& model, std::optional<engine::DraftModelParts> draft_model)
      : options_(options), run_(run), model_(model), draft_model_(std::move(draft_model)) {}

  // Asks in turn without drafts and with them, in one engine. Each repeat has a cache salt of its
  // own, within which the first request is the one without: it leaves what others may find.
  Result<CaseResult> measure(const DraftCase& one) const {
    ASSIGN_OR_RETURN(engine::BackendOptions backend, run_.backend_options(1));
    backend.speculation = options_.speculation;
    backend.speculation.methods = one.methods;
    backend.drafter = one.drafter;
    if (one.methods.contains(DraftMethod::kDraftModel)) backend.draft_model = draft_model_;
    ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> engine,
                     BenchEngine::create(model_, run_, backend));
    CaseResult result;
    // The first round warms up where costs of rows decide: they are not known yet.
    const std::uint32_t warm = one.drafter == nullptr ? 1 : 0;
    for (std::uint32_t repeat = 0; repeat < options_.repeats + warm; ++repeat) {
      engine::Request request = fixed_request(one.prompt, options_.new_tokens);
      request.sampling.temperature = one.temperature;
      request.sampling.seed = 7;
      request.cache_salt = fmt::format("repeat {}", repeat);
      request.constraint = one.constraint;
      request.draft_tokens_max = 0;
      ASSIGN_OR_RETURN(const TimedOutput plain, engine->generate(request));
      request.draft_tokens_max.reset();
      if (one.is_new) request.cache_salt += ", drafted";
      if (one.predicts) {
        request.prediction = std::make_shared<speculate::PredictedText>(plain.tokens);
      } else if (!one.predicted.empty()) {
        request.prediction = std::make_shared<speculate::PredictedText>(
            model_.tokenizer().encode(one.predicted, {}));
      }
      ASSIGN_OR_RETURN(const TimedOutput drafted, engine->generate(request));
      result.is_equal = result.is_equal && plain.tokens == drafted.tokens;
      result.answer = drafted.tokens;
      result.drafts = drafted.record.drafts;
      if (repeat < warm) continue;
      result.off.push_back(rate(plain));
      result.on.push_back(rate(drafted));
    }
    return result;
  }

  // Measures right drafts that cost nothing to find. [length]
  Result<std::vector<CaseResult>> right_drafts(const std::vector<TokenId>& prompt,
                                               const std::vector<TokenId>& answer) const {
    std::vector<CaseResult> results;
    for (const std::uint32_t drafts : kCeilingDrafts) {
      speculate::RecordedDrafter drafter(recorded(drafts, 0));
      record(drafter, prompt, answer);
      ASSIGN_OR_RETURN(results.emplace_back(),
                       measure({.name = {}, .prompt = prompt, .drafter = &drafter}));
    }
    return results;
  }

  // A draft model's drafts at the length at which they would buy most, and what that would be by
  // the cost of rows and drafts and the acceptance alone.
  struct PaidResult {
    std::uint32_t drafts = 0;
    CaseResult measured;
    double expected = 0;
  };
  Result<PaidResult> paid_drafts(const std::vector<TokenId>& prompt,
                                 const std::vector<CaseResult>& right) const {
    TenthModel model(model_.config(), model_.weights(), run_.kernels(), options_.threads);
    PaidResult best;
    for (std::size_t i = 0; i < kPaidLengths; ++i) {
      const std::uint32_t drafts = kCeilingDrafts[i];
      speculate::RecordedDrafter said(recorded(drafts, options_.recorded_wrong));
      record(said, prompt, right[i].answer);
      PaidDrafter drafter(said, model, run_.clock());
      ASSIGN_OR_RETURN(CaseResult result,
                       measure({.name = {}, .prompt = prompt, .drafter = &drafter}));
      RETURN_IF_ERROR(drafter.status());
      double tokens = 0;  // 1 + a + ... + a^k
      double probability = 1;
      for (std::uint32_t k = 0; k <= drafts; ++k) {
        tokens += probability;
        probability *= 1 - options_.recorded_wrong;
      }
      const double row_seconds = 1 / median(right[i].off);
      const double expected = tokens * row_seconds / (right[i].step_seconds() + drafter.seconds());
      if (expected > best.expected) best = {drafts, std::move(result), expected};
    }
    return best;
  }

  speculate::RecordedDrafter::Options recorded(std::uint32_t drafts, double wrong) const {
    return {
        .wrong = wrong, .tokens_max = drafts, .vocabulary = model_.config().vocabulary, .seed = 3};
  }

  static void record(speculate::RecordedDrafter& drafter, std::vector<TokenId> prompt,
                     const std::vector<TokenId>& answer) {
    prompt.insert(prompt.end(), answer.begin(), answer.end());
    drafter.record(std::move(prompt));
  }

 private:
  static double rate(const TimedOutput& output) {
    return static_cast<double>(output.tokens.size() - 1) /
           seconds_between(output.times_ns.front(), output.times_ns.back());
  }

  const BenchSpeculateOptions& options_;
  const BenchRun& run_;
  const app::LoadedModel& model_;
  std::optional<engine::DraftModelParts> draft_model_;
};

// Sentences of which a number alone is free.
Result<std::shared_ptr<const structured::Matcher>> counted_lamps(std::uint32_t sentences,
                                                                 const app::LoadedModel& model) {
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const structured::Grammar> grammar,
      structured::grammar_from_regex(fmt::format(
          "(The keeper counted [0-9]{{1,3}} lamps in the tower\\.\n){{{}}}", sentences)));
  return std::make_shared<const structured::Matcher>(
      grammar, app::mask_vocabulary_of(model.tokenizer(), model.config().vocabulary));
}

Result<std::vector<DraftCase>> cases_of(const BenchSpeculateOptions& options,
                                        const app::LoadedModel& model) {
  // A sentence has some eight tokens or more.
  ASSIGN_OR_RETURN(std::shared_ptr<const structured::Matcher> lamps,
                   counted_lamps(options.new_tokens / 8 + 1, model));
  const auto encode = [&](const std::string& text) {
    return model.tokenizer().encode(text, {.special = false, .add_bos_eos = true});
  };
  const std::string text = copied_text(options.lines);
  const std::string again = "\nThe same text again:\n\n";
  const std::vector<TokenId> copy = encode(text + again + text + again);
  const std::vector<TokenId> question = encode("The history of the pagoda begins");
  std::vector<DraftCase> cases = {
      {.name = "tree, repeated question",
       .prompt = question,
       .methods = speculate::MethodSet(DraftMethod::kTree)},
      {.name = "tree, repeated, sampled",
       .prompt = question,
       .temperature = 0.8f,
       .methods = speculate::MethodSet(DraftMethod::kTree)},
      {.name = "suffix, copied text",
       .prompt = copy,
       .methods = speculate::MethodSet(DraftMethod::kSuffix)},
      {.name = "ngram, copied text",
       .prompt = copy,
       .methods = speculate::MethodSet(DraftMethod::kNgram)},
      {.name = "prediction, right",
       .prompt = copy,
       .methods = speculate::MethodSet(DraftMethod::kPrediction),
       .predicts = true},
      {.name = "constraint, sentences",
       .prompt = question,
       .methods = speculate::MethodSet(DraftMethod::kConstraint),
       .constraint = std::move(lamps)},
      // Sampled at a high temperature nothing comes twice, and nobody asked the same before.
      {.name = "default, no draft fits",
       .prompt = question,
       .temperature = 1.5f,
       .methods = app::default_speculation().methods,
       .predicted = text,
       .is_new = true}};
  if (options.speculation.draft_model.empty()) return cases;
  for (const float temperature : {0.0f, 0.8f}) {
    cases.push_back({.name = temperature == 0 ? "draft model" : "draft model, sampled",
                     .prompt = question,
                     .temperature = temperature,
                     .methods = speculate::MethodSet(DraftMethod::kDraftModel)});
  }
  return cases;
}

void add_case(terminal::BenchReport& report, const std::string& name, const CaseResult& result) {
  report.add_row({name, result.acceptance(), result.tokens_per_step(), median(result.off),
                  median(result.on), result.ratio(), std::string(result.is_equal ? "yes" : "NO")});
}

void add_paid(terminal::BenchReport& report, const SpeculateBench::PaidResult& paid, double wrong) {
  add_case(report,
           fmt::format("model of a tenth, {} tokens, {:.0f} % wrong", paid.drafts, wrong * 100),
           paid.measured);
  const double share = paid.measured.ratio() / paid.expected;
  report.add_figure(
      "draft_model_expected", paid.expected,
      fmt::format("a draft model of a tenth: (1 + a + ... + a^{0}) rows of one over "
                  "the cost of {1} rows and {0} drafts is {2:.2f}; seen {3:.2f}, "
                  "{4:.2f} of it",
                  paid.drafts, paid.drafts + 1, paid.expected, paid.measured.ratio(), share));
  report.add_detail("draft_model_share", share);
}

}  // namespace

Result<terminal::BenchReport> bench_speculate(const BenchSpeculateOptions& options,
                                              const BenchRun& run) {
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  terminal::BenchReport report("speculate", {{"drafts", "drafts"},
                                             {"acceptance", "accepted", 3},
                                             {"tokens_per_step", "tok/step", 2},
                                             {"tokens_per_second_off", "tok/s off", 1},
                                             {"tokens_per_second_on", "tok/s on", 1},
                                             {"ratio", "on/off", 3},
                                             {"equal", "equal"}});
  ASSIGN_OR_RETURN(std::optional<engine::DraftModelParts> draft_model,
                   app::load_draft_model(options.speculation, model->tokenizer(), run.kernels()));
  const SpeculateBench bench(options, run, *model, std::move(draft_model));
  ASSIGN_OR_RETURN(std::vector<DraftCase> cases, cases_of(options, *model));
  terminal::ProgressBar progress("kinds of drafts", "measured", run.clock());
  bool all_equal = true;
  std::vector<TokenId> copied;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ASSIGN_OR_RETURN(const CaseResult result, bench.measure(cases[i]));
    if (cases[i].methods.contains(DraftMethod::kNgram)) copied = result.answer;
    add_case(report, cases[i].name, result);
    all_equal = all_equal && result.is_equal;
    progress.show(i + 1, cases.size() + 2);
  }
  const std::vector<TokenId>& prompt = cases[2].prompt;
  speculate::RecordedDrafter wrong(bench.recorded(options.recorded_drafts, options.recorded_wrong));
  SpeculateBench::record(wrong, prompt, copied);
  ASSIGN_OR_RETURN(const CaseResult recorded,
                   bench.measure({.name = {}, .prompt = prompt, .drafter = &wrong}));
  add_case(report,
           fmt::format("recorded, {} tokens, {:.0f} % wrong", options.recorded_drafts,
                       options.recorded_wrong * 100),
           recorded);
  all_equal = all_equal && recorded.is_equal;
  ASSIGN_OR_RETURN(const std::vector<CaseResult> right, bench.right_drafts(prompt, copied));
  double ceiling = 1;
  for (const CaseResult& result : right) ceiling = std::max(ceiling, result.ratio());
  // The stand-in for a draft model computes on the CPU.
  if (!app::may_run_on_gpu(options.device)) {
    ASSIGN_OR_RETURN(const SpeculateBench::PaidResult paid, bench.paid_drafts(prompt, right));
    add_paid(report, paid, options.recorded_wrong);
    all_equal = all_equal && paid.measured.is_equal;
  }
  run.add_settings(report);
  report.add_setting("new_tokens", options.new_tokens);
  report.add_setting("repeats", options.repeats);
  report.add_setting("prompt_tokens_copied", prompt.size());
  report.add_figure("ceiling", ceiling,
                    fmt::format("ceiling: right drafts that cost nothing to find, at the best "
                                "length: {:.2f} times as fast",
                                ceiling));
  const double shared = shared_grams(prompt, copied);
  report.add_figure(
      "shared_8_grams", shared,
      fmt::format("8-grams of the copied text's answer that its prompt has: {:.2f}{}", shared,
                  shared < kSharedLeast ? ", too few to call it a copy" : ""));
  if (!all_equal) return Error{ErrorCode::kCorrupt, "drafts changed an answer"};
  return report;
}

}  // namespace pagoda::bench
