#include "eval/eval_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pagoda::eval {
namespace {

// How the tasks are asked: another number for other questions.
constexpr int kTasksVersion = 1;

// Sets the part at depth of a sequence that may have `tokens` tokens.
void set_depth(EvalPlan& plan, std::uint64_t first, std::uint64_t positions, std::uint64_t tokens) {
  plan.depth_end = std::min({first + positions, tokens, std::uint64_t{plan.tokens.size()}});
  plan.depth_first = plan.depth_end == first + positions
                         ? first
                         : plan.depth_end - std::min(positions, plan.depth_end / 3);
}

}  // namespace

std::uint64_t EvalPlan::sequence_tokens_max() const {
  std::uint64_t most = std::max<std::uint64_t>(depth_end, windows > 0 ? window_tokens : 0) + 1;
  for (const Task& task : tasks) {
    for (const TaskQuestion& question : task.questions) {
      most = std::max<std::uint64_t>(most, question.prompt.size() + question.tokens_max);
    }
  }
  return most;
}

Result<EvalPlan> make_plan(const PlanOptions& options, const Document& document,
                           const text::Tokenizer& tokenizer) {
  EvalPlan plan;
  plan.tokens = tokenizer.encode(document.text, {.add_bos_eos = true});
  if (tokenizer.add_eos() && !plan.tokens.empty()) plan.tokens.pop_back();
  const std::uint64_t context = options.context_tokens;
  set_depth(plan, options.depth, options.positions, context);
  if (plan.positions() < std::min<std::uint64_t>(kPositionsMin, options.positions)) {
    return Error{
        ErrorCode::kOutOfRange,
        fmt::format("{}: {} tokens and a context of {} leave {} positions to score, fewer "
                    "than {}",
                    document.name, plan.tokens.size(), context, plan.positions(), kPositionsMin)};
  }
  plan.window_tokens =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(options.window_tokens, context));
  plan.windows =
      std::min<std::size_t>(options.windows_max, plan.tokens.size() / plan.window_tokens);
  return plan;
}

void shorten(EvalPlan& plan, std::uint64_t tokens) {
  if (tokens >= plan.depth_end) return;
  set_depth(plan, plan.depth_first, plan.positions(), tokens);
}

nlohmann::ordered_json plan_settings(const EvalPlan& plan, const Document& document) {
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (const Task& task : plan.tasks) {
    tasks.push_back(fmt::format("{} v{} x{}", task.name, kTasksVersion, task.questions.size()));
  }
  return {{"text", document.name},
          {"text_digest", document.digest},
          {"first_position", plan.depth_first},
          {"positions", plan.positions()},
          {"window_tokens", plan.window_tokens},
          {"windows", plan.windows},
          {"tasks", std::move(tasks)}};
}

}  // namespace pagoda::eval
