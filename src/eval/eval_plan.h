// The plan is the same for every configuration of a run: which tokens are read, which positions
// scored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "eval/document.h"
#include "eval/task.h"
#include "text/tokenizer.h"

namespace pagoda::eval {

struct PlanOptions {
  std::uint32_t depth = 4096;         // the first position that is scored at depth
  std::uint32_t positions = 2000;     // that are scored at depth
  std::uint32_t windows_max = 40;     // of perplexity, 0: it is not measured
  std::uint32_t window_tokens = 512;  // as llama.cpp publishes it
  std::uint64_t context_tokens = 0;   // of the model
};

struct EvalPlan {
  std::vector<TokenId> tokens;  // of the document
  std::uint64_t depth_first = 0;
  std::uint64_t depth_end = 0;  // behind the last position that is scored
  std::uint32_t window_tokens = 0;
  std::size_t windows = 0;
  std::vector<Task> tasks = {};

  std::uint64_t positions() const { return depth_end - depth_first; }
  // Returns how many tokens the longest sequence has, prompt and output.
  std::uint64_t sequence_tokens_max() const;
};

// Where document or context are shorter than asked, the last third of what fits is scored (at most
// as many positions as asked). An error where fewer than kPositionsMin positions are left.
inline constexpr std::uint64_t kPositionsMin = 8;
Result<EvalPlan> make_plan(const PlanOptions& options, const Document& document,
                           const text::Tokenizer& tokenizer);

// Shortens the part at depth to a sequence of `tokens`, by the same rule.
void shorten(EvalPlan& plan, std::uint64_t tokens);

// Equal for plans that measure the same: figures of other plans are others.
nlohmann::ordered_json plan_settings(const EvalPlan& plan, const Document& document);

}  // namespace pagoda::eval
