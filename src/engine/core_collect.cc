// The second half of a step: what the launch gave.
#include <algorithm>

#include "base/assert.h"
#include "engine/core.h"
#include "engine/spoilt_rows.h"
#include "engine/tiers/tiers.h"

namespace pagoda::engine {

void Core::collect() {
  const sched::Step& step = scheduler_.begin_collect();
  const std::int64_t began = clock_.now_ns();
  const Collected collected = runner_.collect();
  if (collected.lost != nullptr) {
    lose(*collected.lost);
    return scheduler_.end_collect();
  }
  const std::int64_t collected_ns = clock_.now_ns();
  auto samples = collected.samples;
  auto scores = collected.scores;
  auto spoilt = collected.spoilt;
  std::uint64_t rows_computed = 0;
  for (const sched::PlannedRows& rows : step.rows) {
    Answer& answer = static_cast<Answer&>(*rows.task);
    const std::size_t sampled = rows.samples ? answer.answers : 0;
    const bool finite = spoilt.empty() || spoilt.front() == 0;
    if (!spoilt.empty()) spoilt = spoilt.subspan(1);
    collect_rows(rows, samples.first(sampled), scores, finite);
    samples = samples.subspan(sampled);
    rows_computed += rows.rows;
  }
  scheduler_.end_collect();
  distributions_.observe_phase(StepPhase::kWait, began, collected_ns);
  distributions_.observe_phase(StepPhase::kEmit, collected_ns, clock_.now_ns());
  if (tiers_) {
    // Launches are computed one after the other.
    const std::int64_t computed_from_ns = std::max(step.launched_ns, collected_before_ns_);
    tiers_->note_step(rows_computed, seconds_between(computed_from_ns, collected_ns));
    collected_before_ns_ = collected_ns;
  }
}

// Rows that were not computed are not published.
void Core::lose(const Error& error) {
  if (!lost_) lost_ = error;
  while (!requests_.empty()) {
    end_all(*requests_.begin()->second, FinishReason::kLost, lost_->message);
  }
}

void Core::collect_rows(const sched::PlannedRows& rows, std::span<Result<TokenChoice>> samples,
                        std::span<const TokenScore>& scores, bool finite) {
  Answer& answer = static_cast<Answer&>(*rows.task);
  take_scores(answer, rows, scores);
  if (answer.state == sched::TaskState::kFinished) return;
  // What these rows hold is not to be trusted: nothing of it is published.
  if (!finite) {
    return end_all(*answer.request, FinishReason::kError,
                   spoilt_rows_error(rows.first, rows.rows).message);
  }
  if (!samples.empty() && !samples.front().ok()) {
    return end_all(*answer.request, FinishReason::kError, samples.front().error().message);
  }
  const std::size_t blocks_known = answer.sequence ? answer.sequence->nodes().size() : 0;
  scheduler_.commit(rows);
  if (tiers_ && answer.sequence) {
    tiers_->note_sealed(answer.sequence->nodes().subspan(blocks_known));
  }
  if (samples.empty()) return;
  retain(answer);
  // Forks first: the leader may end with this token.
  for (std::size_t i = 1; i < samples.size(); ++i) {
    Answer& follower = *answer.request->answers[answer.index + i];
    follower.tokens.assign(
        answer.tokens.begin(),
        answer.tokens.begin() + static_cast<std::ptrdiff_t>(answer.prompt_tokens));
    follower.samples_in_flight = 1;
    follower.started_ns = answer.started_ns;
    scheduler_.fork(answer, follower);
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    add_token(*answer.request->answers[answer.index + i], samples[i].value());
  }
}

// Scores that this launch computed for the prompt.
void Core::take_scores(Answer& answer, const sched::PlannedRows& rows,
                       std::span<const TokenScore>& scores) {
  const std::uint64_t end =
      std::min<std::uint64_t>(rows.first + rows.rows + 1, answer.prompt_tokens);
  if (!answer.request->asked.sampling.prompt_logprobs || answer.index != 0) return;
  if (end <= answer.scores_taken + 1) return;
  const std::size_t count = end - 1 - answer.scores_taken;
  const bool ended = answer.state == sched::TaskState::kFinished;
  if (!ended) answer.request->sink->on_prompt_scores(scores.first(count));
  answer.scores_taken += count;
  scores = scores.subspan(count);
  // Once all are known, the cache may serve it like any other.
  if (answer.scores_taken + 1 == answer.prompt_tokens) answer.compute_whole_prompt = false;
}

// The prompt is computed, and its sequence open.
void Core::retain(const Answer& answer) {
  OpenRequest& request = *answer.request;
  if (!request.asked.retain || request.retain) return;
  const RetainWish& wish = *request.asked.retain;
  const Result<kv::Retained> kept =
      cache_.retain(*answer.sequence, {.tokens = wish.tokens,
                                       .until_ns = clock_.now_ns() + wish.time_ns,
                                       .priority = wish.priority});
  request.retain = kept.ok() ? RetainOutcome{kept.value().tokens, kept.value().blocks, {}}
                             : RetainOutcome{0, 0, kept.error().message};
}

void Core::add_token(Answer& answer, const TokenChoice& choice) {
  const std::int64_t now = clock_.now_ns();
  if (answer.first_token_ns == 0) {
    answer.first_token_ns = now;
    note_first_token(answer);
  } else {
    const std::int64_t gap = now - answer.last_token_ns;
    ++answer.gaps.count;
    answer.gaps.sum_ns += gap;
    answer.gaps.max_ns = std::max(answer.gaps.max_ns, gap);
    distributions_.token_gap_s.observe(seconds_between(answer.last_token_ns, now));
  }
  answer.last_token_ns = now;
  scheduler_.append(answer, choice.token);
  ++counters_.answer_tokens;
  ++tenants_[answer.tenant].use.answer_tokens;
  const std::optional<FinishReason> end = end_of(answer, choice.token);
  answer.request->sink->on_token(answer.index, {.token = choice.token,
                                                .ends = end == FinishReason::kStop,
                                                .score = choice.score ? &*choice.score : nullptr});
  if (end) finish(answer, *end);
}

void Core::note_first_token(const Answer& answer) {
  distributions_.first_token_s.observe(
      seconds_between(answer.request->arrived_ns, answer.first_token_ns));
  if (answer.index != 0) return;  // a prompt counts once
  counters_.prompt_tokens += answer.prompt_tokens;
  counters_.prompt_tokens_cached += answer.tokens_cached;
  sched::TenantUse& use = tenants_[answer.tenant].use;
  use.prompt_tokens += answer.prompt_tokens;
  use.prompt_tokens_cached += answer.tokens_cached;
}

// Why the answer ends with the token it just got, if it does.
std::optional<FinishReason> Core::end_of(const Answer& answer, TokenId token) const {
  const std::uint64_t generated = answer.tokens.size() - answer.prompt_tokens;
  const std::optional<EndReason> end = answer.sampling.end_rule().after(token, generated);
  if (end) return *end == EndReason::kLength ? FinishReason::kLength : FinishReason::kStop;
  if (answer.tokens.size() < answer.tokens_max) return std::nullopt;
  return answer.tokens_max < options_.limits.context_tokens ? FinishReason::kLength
                                                            : FinishReason::kContext;
}

void Core::finish(Answer& answer, FinishReason reason, const std::string& message) {
  OpenRequest& request = *answer.request;
  if (!answer.tokens.empty()) {  // else a fork that was never born
    scheduler_.finish(answer);
  } else {
    answer.state = sched::TaskState::kFinished;
  }
  const std::uint64_t prompt = request.answers.front()->prompt_tokens;
  const LoadRecord load = tiers_ ? tiers_->end(answer) : LoadRecord{};
  for (std::size_t i = 0; i < kTiersMax; ++i) counters_.prompt_tokens_loaded[i] += load.tokens[i];
  counters_.load_seconds_waited += load.waited_s;
  counters_.load_seconds_saved += load.saved_s;
  AnswerRecord record = {.prompt_tokens = prompt,
                         .prompt_tokens_cached = answer.tokens_cached,
                         .prompt_tokens_computed = answer.prompt_rows_computed,
                         .answer_tokens = answer.tokens.empty() ? 0 : answer.tokens.size() - prompt,
                         .preemptions = answer.preemptions,
                         .seed = answer.sampling.options().seed,
                         .arrived_ns = request.arrived_ns,
                         .started_ns = answer.started_ns,
                         .first_token_ns = answer.first_token_ns,
                         .finished_ns = clock_.now_ns(),
                         .gaps = answer.gaps,
                         .load = load,
                         .retain = request.retain,
                         .explanation = {}};
  if (request.asked.explain && answer.started_ns != 0) {
    record.explanation = request.answers.front()->explanation;
  }
  ++counters_.answers_finished[static_cast<std::size_t>(reason)];
  counters_.context_tokens_longest =
      std::max<std::uint64_t>(counters_.context_tokens_longest, answer.tokens.size());
  if (ended_well(reason) && answer.first_token_ns != 0) distributions_.observe_answer(record);
  request.sink->on_finish(answer.index, reason, record, message);
  if (--request.answers_left > 0) return;
  note_end(request);
  const auto found = requests_.find(request.id);
  finished_.push_back(std::move(found->second));
  requests_.erase(found);
}

void Core::note_end(const OpenRequest& request) {
  ++counters_.requests_finished;
  ++tenants_[request.asked.tenant].use.requests_finished;
  const std::uint64_t prompt = request.answers.front()->prompt_tokens;
  std::uint64_t longest = 0;
  for (const auto& answer : request.answers) {
    longest = std::max<std::uint64_t>(longest, answer->tokens.size());
  }
  distributions_.prompt_tokens.observe(static_cast<double>(prompt));
  distributions_.answer_tokens_longest.observe(static_cast<double>(longest - prompt));
  distributions_.answers_asked.observe(request.asked.sampling.n);
  if (request.asked.end.max_tokens) {
    distributions_.tokens_asked.observe(*request.asked.end.max_tokens);
  }
}

// Destroys ended requests that no launch uses.
void Core::forget_finished() {
  std::erase_if(finished_, [&](const std::unique_ptr<OpenRequest>& request) {
    return std::all_of(request->answers.begin(), request->answers.end(),
                       [&](const auto& answer) { return scheduler_.quiet(*answer); });
  });
}

void Core::check() const {
  scheduler_.check(tiers_ && !tiers_->is_idle());
  for (const auto& [id, request] : requests_) {
    ASSERT(request->id == id && request->answers_left > 0, "open requests have answers to give");
  }
}

}  // namespace pagoda::engine
