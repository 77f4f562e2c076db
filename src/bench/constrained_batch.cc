#include "bench/constrained_batch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "bench/bench_engine.h"
#include "bench/decode.h"
#include "bench/samples.h"
#include "structured/matcher.h"

namespace pagoda::bench {
namespace {

constexpr std::uint32_t kPromptTokens = 16;
constexpr std::uint32_t kNewTokens = 64;

// A list that never ends, so that all answers are as long.
Result<std::shared_ptr<const structured::Matcher>> endless_list(
    std::shared_ptr<const structured::MaskVocabulary> vocabulary) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const structured::Grammar> grammar,
                   structured::grammar_from_schema(structured::SchemaJson::parse(
                       R"({"type":"array","minItems":100000,"items":{"type":"object","properties":{
                "name":{"type":"string","maxLength":20},"kind":{"enum":["red","green","blue"]},
                "size":{"type":"integer","minimum":0},"tags":{"type":"array","items":{
                "type":"string","maxLength":9},"maxItems":3}},
                "required":["name","kind","size","tags"]}})")));
  return std::make_shared<const structured::Matcher>(grammar, std::move(vocabulary));
}

// Tokens per second with the grammar on the first `constrained` sequences.
Result<double> measure_once(BenchEngine& engine,
                            const std::shared_ptr<const structured::Matcher>& grammar,
                            std::uint32_t constrained) {
  std::vector<PendingRequest> pending;
  for (std::uint32_t i = 0; i < kConstrainedBatch; ++i) {
    engine::Request request =
        fixed_request(random_prompt(engine.vocabulary(), kPromptTokens, i), kNewTokens);
    if (i < constrained) request.constraint = grammar;
    ASSIGN_OR_RETURN(PendingRequest one, engine.submit(std::move(request)));
    pending.push_back(std::move(one));
  }
  ASSIGN_OR_RETURN(const std::optional<double> seconds, finish_together(engine, pending));
  if (!seconds) return Error{ErrorCode::kOutOfRange, "the sequences did not run together"};
  return kConstrainedBatch / *seconds;
}

}  // namespace

Result<ConstrainedBatch> measure_constrained_batch(
    const BenchRun& run, std::shared_ptr<const structured::MaskVocabulary> vocabulary,
    std::uint32_t repeats) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const structured::Matcher> grammar,
                   endless_list(std::move(vocabulary)));
  ASSIGN_OR_RETURN(const engine::BackendOptions backend, run.backend_options(kConstrainedBatch));
  ASSIGN_OR_RETURN(const std::unique_ptr<app::LoadedModel> model, run.load_model());
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> engine,
                   BenchEngine::create(*model, run, backend));
  constexpr std::array<std::uint32_t, 3> kConstrained = {0, 1, kConstrainedBatch};
  std::array<std::vector<double>, kConstrained.size()> rates;
  std::array<std::vector<double>, kConstrained.size()> ratios;
  // The first round finds the prompts not computed yet, and counts for nothing. Every other round
  // goes backwards.
  for (std::uint32_t repeat = 0; repeat <= repeats; ++repeat) {
    std::array<double, kConstrained.size()> round = {};
    for (std::size_t i = 0; i < round.size(); ++i) {
      const std::size_t which = repeat % 2 == 0 ? i : round.size() - 1 - i;
      ASSIGN_OR_RETURN(round[which], measure_once(*engine, grammar, kConstrained[which]));
    }
    for (std::size_t i = 0; repeat > 0 && i < round.size(); ++i) {
      rates[i].push_back(round[i]);
      ratios[i].push_back(round[i] / round[0]);
    }
  }
  const auto rate_of = [&](std::size_t i) {
    return ConstrainedBatch::Rate{median(rates[i]), median(ratios[i])};
  };
  return ConstrainedBatch{rate_of(0), rate_of(1), rate_of(2)};
}

}  // namespace pagoda::bench
