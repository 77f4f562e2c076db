#include <algorithm>
#include <cstddef>

#include "eval/task.h"

namespace pagoda::eval {
namespace {

void count_answer(TaskScore& score, const std::string& cell, bool is_right) {
  auto at = std::find_if(score.cells.begin(), score.cells.end(),
                         [&](const TaskCell& each) { return each.name == cell; });
  if (at == score.cells.end()) at = score.cells.insert(at, TaskCell{cell});
  at->asked += 1;
  at->right += is_right ? 1 : 0;
  score.asked += 1;
  score.right += is_right ? 1 : 0;
}

}  // namespace

Result<std::vector<TaskScore>> answer_tasks(std::span<const Task> tasks, const Answerer& answerer,
                                            const std::vector<TaskScore>* baseline) {
  std::vector<TaskScore> scores;
  for (const Task& task : tasks) {
    ASSIGN_OR_RETURN(const std::vector<std::vector<TokenId>> answers, answerer(task.questions));
    TaskScore score = {.task = task.name};
    for (std::size_t i = 0; i < task.questions.size(); ++i) {
      const TaskQuestion& question = task.questions[i];
      count_answer(score, question.cell, question.is_right(answers[i]));
    }
    score.right_baseline = baseline == nullptr ? score.right : (*baseline)[scores.size()].right;
    scores.push_back(std::move(score));
  }
  return scores;
}

}  // namespace pagoda::eval
