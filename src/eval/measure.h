// Measures one configuration over a backend that has it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/token_id.h"
#include "engine/backends/backend.h"
#include "eval/eval_plan.h"
#include "eval/measurement.h"
#include "eval/reference_logits.h"
#include "text/tokenizer.h"

namespace pagoda::eval {

struct MeasureContext {
  const EvalPlan& plan;
  const text::Tokenizer& tokenizer;
  const Clock& clock;
  std::string label;                // of progress bars
  std::function<bool()> cancelled;  // asked now and then
};

// Keys and values of one token in bits, all groups of layers together.
double kv_bits_per_token(const engine::Backend& backend);
// The mean over the first `tokens` tokens of a sequence, of which the backend's policy keeps some
// behind a prompt.
double kv_bits_per_token_read(const engine::Backend& backend, std::uint64_t prompt_tokens,
                              std::uint64_t tokens);
// The share of positions at depth from which the backend's policy keeps something; 1 without one.
double bounded_share(const engine::Backend& backend, const EvalPlan& plan);

// Returns the log-probabilities of the positions at depth.
Result<std::vector<float>> read_logprobs(engine::Backend& backend, const MeasureContext& context);

// Returns the log-probabilities of the positions at depth, and writes their logits to `reference`.
Result<std::vector<float>> read_reference(engine::Backend& backend, const MeasureContext& context,
                                          ReferenceLogits& reference);
// The same, and compares their logits with those of `reference`.
Result<std::vector<float>> read_compared(engine::Backend& backend, const MeasureContext& context,
                                         ReferenceLogits& reference, Divergence& divergence);

// Measures everything but the part at depth. `baseline` is that of the baseline, nullptr: this is
// it.
Status measure_rest(engine::Backend& backend, const MeasureContext& context,
                    const Measurement* baseline, Measurement& measured);

}  // namespace pagoda::eval
