// Tasks whose answers are right or wrong: what perplexity does not see, such as retrieval.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "chat/served_form.h"
#include "eval/measurement.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::eval {

struct TaskQuestion {
  std::string cell;  // its place in the task's grid
  std::vector<TokenId> prompt;
  std::uint32_t tokens_max = 0;  // of the answer
  std::function<bool(std::span<const TokenId> answer)> is_right;
};

struct Task {
  std::string name;
  std::vector<TaskQuestion> questions;
};

// The model as far as questions depend on it. What it refers to must outlive the tasks.
struct TaskModel {
  const text::Tokenizer& tokenizer;
  const text::ChatTemplate* chat = nullptr;  // nullptr: questions are plain text
  const chat::ServedForm* form = nullptr;    // nullptr: tool calls are not read
  std::uint64_t context_tokens = 0;
};

// "needle" (one number hidden in a long text, by length and depth), "recall" (one value of many
// keys) and "copy" (words in random order again). Questions that the context has no room for are
// left out.
std::vector<Task> retrieval_tasks(const TaskModel& model, const std::string& haystack);

// "tool_call": the model asked to call a tool gives arguments that are valid JSON of its schema.
// Nothing where the model's chat template has no tool calls.
Result<std::optional<Task>> tool_call_task(const TaskModel& model);

// Answers questions, in their order.
using Answerer = std::function<Result<std::vector<std::vector<TokenId>>>(
    std::span<const TaskQuestion> questions)>;

// Returns the scores of tasks; right_baseline is that of `baseline`, task by task, or of the run
// itself where there is none.
Result<std::vector<TaskScore>> answer_tasks(std::span<const Task> tasks, const Answerer& answerer,
                                            const std::vector<TaskScore>* baseline);

}  // namespace pagoda::eval
