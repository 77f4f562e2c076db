#include "eval/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "app/offline_batch.h"
#include "terminal/progress_bar.h"

namespace pagoda::eval {
namespace {

// Copies rows to the reference.
class RowWriter final : public engine::LogitsReader {
 public:
  RowWriter(ReferenceLogits& reference, std::uint64_t first)
      : reference_(reference), first_(first) {}
  void on_logits(std::uint64_t position, std::span<const float> logits) override {
    std::copy(logits.begin(), logits.end(), reference_.row(position - first_).begin());
  }

 private:
  ReferenceLogits& reference_;
  std::uint64_t first_;
};

// Compares rows with the reference.
class RowComparer final : public engine::LogitsReader {
 public:
  RowComparer(ReferenceLogits& reference, std::uint64_t first)
      : reference_(reference), first_(first), rows_(reference.rows()) {}
  void on_logits(std::uint64_t position, std::span<const float> logits) override {
    rows_[position - first_] = compare_rows(reference_.row(position - first_), logits);
  }
  const std::vector<RowDivergence>& rows() const { return rows_; }

 private:
  ReferenceLogits& reference_;
  std::uint64_t first_;
  std::vector<RowDivergence> rows_;  // [position - first]
};

Result<std::vector<float>> read_depth(engine::Backend& backend, const MeasureContext& context,
                                      std::shared_ptr<engine::LogitsReader> reader) {
  const EvalPlan& plan = context.plan;
  const std::span<const TokenId> prompt = std::span(plan.tokens).first(plan.depth_end);
  engine::Request request;
  request.prompt.assign(prompt.begin(), prompt.end());
  request.sampling.prompt_logprobs = 0;
  request.prompt_logprobs_start = plan.depth_first;
  // Policies that select pages do so behind a prompt: what is measured is its continuation.
  request.kv_policy_prompt_tokens = plan.depth_first;
  request.prompt_logits = std::move(reader);
  request.end.max_tokens = 1;
  std::vector<engine::Request> requests;
  requests.push_back(std::move(request));
  terminal::ProgressBar progress(fmt::format("{}: at depth", context.label), "tokens",
                                 context.clock);
  ASSIGN_OR_RETURN(
      std::vector<app::OfflineReply> replies,
      app::run_offline(backend, std::move(requests), context.clock,
                       {.cancelled = context.cancelled, .on_tokens = [&](std::uint64_t done) {
                          progress.show(std::min(done, plan.depth_end), plan.depth_end);
                        }}));
  return std::move(replies.front().prompt_logprobs);
}

engine::Request question_request(const TaskQuestion& question) {
  engine::Request request;
  request.prompt = question.prompt;
  request.end.max_tokens = question.tokens_max;
  return request;
}

}  // namespace

double kv_bits_per_token(const engine::Backend& backend) {
  const kv::memory::PageLayout& layout = backend.page_layout();
  return 8.0 * static_cast<double>(layout.page_bytes() * backend.groups().size()) /
         layout.block_tokens;
}

double kv_bits_per_token_read(const engine::Backend& backend, std::uint64_t prompt_tokens,
                              std::uint64_t tokens) {
  const kv::KvPolicy policy = backend.core_options().limits.kv_policy;
  const auto groups = backend.groups();
  const auto bounded = static_cast<double>(
      std::count_if(groups.begin(), groups.end(),
                    [](const kv::memory::AttentionSpec& group) { return group.window == 0; }));
  const std::uint32_t block_tokens = backend.core_options().limits.block_tokens;
  const double dropped =
      static_cast<double>(policy.tokens_dropped({prompt_tokens, tokens}, block_tokens)) /
      static_cast<double>(tokens);
  return kv_bits_per_token(backend) * (1 - dropped * bounded / static_cast<double>(groups.size()));
}

double bounded_share(const engine::Backend& backend, const EvalPlan& plan) {
  const kv::KvPolicy policy = backend.core_options().limits.kv_policy;
  if (policy.is_full()) return 1;
  const std::uint32_t block_tokens = backend.core_options().limits.block_tokens;
  std::uint64_t bounded = 0;
  for (std::uint64_t row = plan.depth_first; row < plan.depth_end; ++row) {
    if (policy.tokens_dropped({plan.depth_first, row}, block_tokens) > 0) ++bounded;
  }
  return static_cast<double>(bounded) / static_cast<double>(plan.positions());
}

Result<std::vector<float>> read_logprobs(engine::Backend& backend, const MeasureContext& context) {
  return read_depth(backend, context, nullptr);
}

Result<std::vector<float>> read_reference(engine::Backend& backend, const MeasureContext& context,
                                          ReferenceLogits& reference) {
  return read_depth(backend, context,
                    std::make_shared<RowWriter>(reference, context.plan.depth_first));
}

Result<std::vector<float>> read_compared(engine::Backend& backend, const MeasureContext& context,
                                         ReferenceLogits& reference, Divergence& divergence) {
  const auto comparer = std::make_shared<RowComparer>(reference, context.plan.depth_first);
  ASSIGN_OR_RETURN(std::vector<float> logprobs, read_depth(backend, context, comparer));
  divergence = summarise(comparer->rows());
  return logprobs;
}

Status measure_rest(engine::Backend& backend, const MeasureContext& context,
                    const Measurement* baseline, Measurement& measured) {
  const EvalPlan& plan = context.plan;
  terminal::ProgressBar windows(fmt::format("{}: windows", context.label), "read", context.clock);
  ASSIGN_OR_RETURN(
      const std::vector<float> scores,
      app::score_windows(
          backend, context.tokenizer, plan.tokens,
          {.tokens = plan.window_tokens,
           .windows = plan.windows,
           .on_window = [&](std::size_t done, std::size_t all) { windows.show(done, all); },
           .cancelled = context.cancelled},
          context.clock));
  measured.perplexity_windows = app::perplexity_of(scores);
  windows.clear();

  std::uint64_t asked = 0;
  std::uint64_t all = 0;
  for (const Task& task : plan.tasks) all += task.questions.size();
  terminal::ProgressBar tasks(fmt::format("{}: tasks", context.label), "questions", context.clock);
  const auto answer =
      [&](std::span<const TaskQuestion> questions) -> Result<std::vector<std::vector<TokenId>>> {
    // One after another: what they have in common is computed once.
    std::vector<std::vector<TokenId>> answers;
    for (const TaskQuestion& question : questions) {
      std::vector<engine::Request> requests;
      requests.push_back(question_request(question));
      ASSIGN_OR_RETURN(std::vector<app::OfflineReply> replies,
                       app::run_offline(backend, std::move(requests), context.clock,
                                        {.cancelled = context.cancelled, .on_tokens = {}}));
      answers.push_back(std::move(replies.front().tokens));
      tasks.show(++asked, all);
    }
    return answers;
  };
  ASSIGN_OR_RETURN(measured.tasks, answer_tasks(plan.tasks, answer,
                                                baseline == nullptr ? nullptr : &baseline->tasks));
  return ok_status();
}

}  // namespace pagoda::eval
