// The second half of a step takes the results of a launch.
#include <algorithm>

#include "base/assert.h"
#include "engine/accepted_drafts.h"
#include "engine/core.h"
#include "engine/nonfinite_rows.h"
#include "engine/prompt_results.h"
#include "engine/sequence_end.h"
#include "engine/tiers/tiers.h"

namespace pagoda::engine {
namespace {

// Sampling fails by the model's logits, or by what the request allows.
FinishReason reason_of(const Error& error) {
  const bool is_asked_for =
      error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kOutOfRange;
  return is_asked_for ? FinishReason::kNoToken : FinishReason::kError;
}

}  // namespace

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
  auto nonfinite = collected.nonfinite;
  auto hidden = collected.hidden;
  for (const sched::ScheduledChunk& rows : step.chunks) {
    OpenSequence& seq = static_cast<OpenSequence&>(*rows.task);
    const std::size_t sampled = rows.samples ? seq.sequence_count + rows.drafts : 0;
    const std::uint8_t nonfinite_row = nonfinite.empty() ? 0 : nonfinite.front();
    if (!nonfinite.empty()) nonfinite = nonfinite.subspan(1);
    take_scores(seq, rows, scores);
    take_hidden(seq, rows, runner_.hidden_width(), hidden);
    if (rows.drafts > 0) {
      collect_draft(rows, samples.first(sampled), nonfinite_row);
    } else {
      collect_rows(rows, samples.first(sampled), nonfinite_row == 0);
    }
    samples = samples.subspan(sampled);
  }
  scheduler_.end_collect();
  meters_.note_phase(StepPhase::kWait, began, collected_ns);
  const std::int64_t emitted_ns = clock_.now_ns();
  meters_.note_phase(StepPhase::kEmit, collected_ns, emitted_ns);
  drafting_.note_host(plan_seconds_ + seconds_between(collected_ns, emitted_ns));
  // Launches are computed one after the other.
  const std::int64_t computed_from_ns = std::max(step.launched_ns, collected_before_ns_);
  const double seconds = seconds_between(computed_from_ns, collected_ns);
  meters_.note_step(step, seconds);
  if (!collected.was_slowed) {
    drafting_.note_step(step, seconds);
    scheduler_.note_time(step, seconds);
  }
  collected_before_ns_ = collected_ns;
}

// Tokens that were not computed are not published.
void Core::lose(const Error& error) {
  if (!lost_) lost_ = error;
  while (!requests_.empty()) {
    end_all(*requests_.begin()->second, FinishReason::kLost, lost_->message);
  }
}

// Takes the rows one by one, each as a step without drafts takes its row. The row behind a draft
// token counts where the row before it sampled that token, and no row behind the first other does.
void Core::collect_draft(const sched::ScheduledChunk& rows, std::span<Result<SampledToken>> samples,
                         std::uint8_t nonfinite_row) {
  OpenSequence& seq = static_cast<OpenSequence&>(*rows.task);
  const auto is_open = [&] { return seq.state != sched::TaskState::kFinished; };
  const std::uint32_t accepted =
      accepted_drafts(std::span(seq.draft).first(rows.drafts), samples, nonfinite_row);
  if (is_open()) drafting_.note_verified(seq, rows.drafts, accepted);
  sched::ScheduledChunk row = {.task = &seq, .first = rows.first, .tokens = 1, .samples = true};
  for (std::uint32_t i = 0; i <= accepted && is_open(); ++i, ++row.first) {
    if (i > 0) {
      scheduler_.accept_draft(seq);
      meters_.note_step_saved();
    }
    if (i < accepted) drafting_.note_accepted(seq, i);  // before the record of the sequence
    collect_rows(row, samples.subspan(i, 1), nonfinite_row == 0 || i + 1 < nonfinite_row);
  }
  scheduler_.end_drafts(seq);
}

void Core::collect_rows(const sched::ScheduledChunk& rows, std::span<Result<SampledToken>> samples,
                        bool finite) {
  OpenSequence& seq = static_cast<OpenSequence&>(*rows.task);
  if (seq.state == sched::TaskState::kFinished) return;
  // Nothing of these tokens is published: a key, value or query among them is not finite.
  if (!finite) {
    return end_all(*seq.request, FinishReason::kError,
                   nonfinite_rows_error(rows.first, rows.tokens).message);
  }
  if (!samples.empty() && !samples.front().ok()) {
    const Error& error = samples.front().error();
    const FinishReason reason = reason_of(error);
    // Without a token only this sequence ends; other errors, and rows that several sequences start
    // from, end the whole request.
    if (reason == FinishReason::kNoToken && samples.size() == 1) {
      return finish(seq, reason, error.message);
    }
    return end_all(*seq.request, reason, error.message);
  }
  const std::size_t blocks_known = seq.sequence ? seq.sequence->nodes().size() : 0;
  scheduler_.commit(rows);
  if (tiers_ && seq.sequence) {
    tiers_->note_sealed(seq.sequence->nodes().subspan(blocks_known));
  }
  if (samples.empty()) return;
  retain(seq);
  // Forks come first: the leader may end with this token.
  for (std::size_t i = 1; i < samples.size(); ++i) {
    OpenSequence& follower = *seq.request->sequences[seq.index + i];
    follower.tokens.assign(seq.tokens.begin(),
                           seq.tokens.begin() + static_cast<std::ptrdiff_t>(seq.prompt_tokens));
    follower.samples_in_flight = 1;
    follower.started_ns = seq.started_ns;
    scheduler_.fork(seq, follower);
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    add_token(*seq.request->sequences[seq.index + i], samples[i].value());
  }
}

// Called when the prompt is computed and its sequence is open.
void Core::retain(const OpenSequence& seq) {
  OpenRequest& request = *seq.request;
  const auto retain = [&](const RetainParams& params, bool may_clip) {
    const Result<kv::Retained> kept =
        cache_.retain(*seq.sequence, {.tokens = params.tokens,
                                      .until_ns = clock_.now_ns() + params.time_ns,
                                      .priority = params.priority,
                                      .may_clip = may_clip});
    if (!kept.ok()) return RetainOutcome{0, 0, kept.error().message};
    return RetainOutcome{kept.value().tokens, kept.value().blocks, {}, kept.value().limit};
  };
  if (request.asked.retain && !request.retain)
    request.retain = retain(*request.asked.retain, false);
  while (request.breakpoints.size() < request.asked.breakpoints.size()) {
    request.breakpoints.push_back(
        retain(request.asked.breakpoints[request.breakpoints.size()], true));
  }
}

void Core::add_token(OpenSequence& seq, const SampledToken& choice) {
  const std::int64_t now = clock_.now_ns();
  if (seq.first_token_ns == 0) {
    seq.first_token_ns = now;
    meters_.note_first_token(seq);
  } else {
    const std::int64_t gap = now - seq.last_token_ns;
    ++seq.gaps.count;
    seq.gaps.sum_ns += gap;
    seq.gaps.max_ns = std::max(seq.gaps.max_ns, gap);
    meters_.note_next_token(seconds_between(seq.last_token_ns, now));
  }
  seq.last_token_ns = now;
  scheduler_.append(seq, choice.token);
  if (seq.sampling.constraint()) seq.grammar_work = seq.sampling.constraint()->token_work();
  meters_.note_output(seq.tenant);
  std::optional<FinishReason> end = end_of(seq, choice);
  const bool ends = end == FinishReason::kStop;
  OpenRequest& request = *seq.request;
  request.sink->on_token(seq.index, {.token = choice.token,
                                     .ends = ends,
                                     .score = choice.score ? &*choice.score : nullptr,
                                     .prompt_tokens_cached = seq.tokens_cached});
  OutputWatch* const watch = request.asked.watch.get();
  if (!ends && watch != nullptr && watch->ends_with(seq.index, choice.token)) {
    end = FinishReason::kStop;
  }
  if (end) finish(seq, *end);
}

// Returns why the sequence ends with the token it just got, if it does. Nothing follows the end of
// a grammar, whatever min_tokens and ignore_eos say.
std::optional<FinishReason> Core::end_of(const OpenSequence& seq,
                                         const SampledToken& choice) const {
  if (choice.ends_grammar) return FinishReason::kStop;
  const std::uint64_t generated = seq.tokens.size() - seq.prompt_tokens;
  const std::optional<StopReason> end = seq.sampling.stop_criteria().after(choice.token, generated);
  if (end) return *end == StopReason::kLength ? FinishReason::kLength : FinishReason::kStop;
  if (seq.tokens.size() < seq.tokens_max) return std::nullopt;
  return seq.tokens_max < options_.limits.context_tokens ? FinishReason::kLength
                                                         : FinishReason::kContext;
}

void Core::finish(OpenSequence& seq, FinishReason reason, const std::string& message) {
  OpenRequest& request = *seq.request;
  std::vector<kv::NodeId> whole_blocks =
      blocks_to_hand_over(seq, reason, cache_.options().block_tokens);
  if (!seq.tokens.empty()) {  // else the sequence is a fork that was never born
    scheduler_.finish(seq);
  } else {
    seq.state = sched::TaskState::kFinished;
  }
  const std::int64_t now_ns = clock_.now_ns();
  SequenceRecord record = record_of(seq, tiers_ ? tiers_->end(seq) : LoadRecord{}, now_ns);
  if (cache_.options().share && seq.first_token_ns != 0) {
    record.prompt_tokens_written = seq.prompt_tokens_written;
  }
  drafting_.note_end(seq, record.prompt_tokens);
  meters_.note_finish(seq, reason, record);
  tell_end(seq, {reason, std::move(record), message, std::move(whole_blocks)}, cache_, tiers_.get(),
           now_ns);
  if (--request.sequences_left > 0) return;
  meters_.note_end(request);
  const auto found = requests_.find(request.id);
  finished_.push_back(std::move(found->second));
  requests_.erase(found);
}

std::size_t Core::requests_open() const {
  return requests_.size() + prefetches_.size() + (tiers_ ? tiers_->handovers().size() : 0);
}

// Destroys ended requests that no launch uses.
void Core::forget_finished() {
  std::erase_if(finished_, [&](const std::unique_ptr<OpenRequest>& request) {
    return std::all_of(request->sequences.begin(), request->sequences.end(),
                       [&](const auto& seq) { return scheduler_.quiet(*seq); });
  });
}

void Core::check() const {
  scheduler_.check(tiers_ && (!tiers_->is_idle() || tiers_->leases().pages() > 0));
  for (const auto& [id, request] : requests_) {
    ASSERT(request->id == id && request->sequences_left > 0, "open requests have answers to give");
  }
}

}  // namespace pagoda::engine
