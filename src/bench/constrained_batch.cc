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
  std::array<std::vector<double>, 3> rates;
  // The first round finds the prompts not computed yet, and counts for nothing.
  for (std::uint32_t repeat = 0; repeat <= repeats; ++repeat) {
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const std::array<std::uint32_t, 3> constrained = {0, 1, kConstrainedBatch};
      ASSIGN_OR_RETURN(const double rate, measure_once(*engine, grammar, constrained[i]));
      if (repeat > 0) rates[i].push_back(rate);
    }
  }
  return ConstrainedBatch{median(rates[0]), median(rates[1]), median(rates[2])};
}

}  // namespace pagoda::bench
