// EngineMeters count and measure what the core does: counters for the engine's thread, which
// publishes them, and distributions that any thread reads. A tenant's use is kept in its account.
//
// Thread rule: the engine's thread, but for reading distributions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/distributions.h"
#include "engine/finish_reason.h"
#include "engine/open_request.h"
#include "engine/rate_meter.h"
#include "engine/reply.h"
#include "engine/request.h"
#include "engine/snapshot.h"
#include "engine/tiers/load_record.h"
#include "sched/scheduler.h"
#include "sched/tenant.h"

namespace pagoda::engine {

class EngineMeters {
 public:
  // The tenants must outlive the meters.
  // `tokens_per_second`: of prompts, as an earlier process measured it; 0: unknown.
  EngineMeters(sched::TenantTable& tenants, double tokens_per_second) : tenants_(tenants) {
    if (tokens_per_second > 0) prompt_rate_.add(tokens_per_second, 1);
  }

  const Counters& counters() const { return counters_; }
  const Distributions& distributions() const { return distributions_; }
  // Tokens of prompts that are computed in a second.
  const RateMeter& prompt_rate() const { return prompt_rate_; }
  // Tokens of outputs that come in a second of steps.
  const RateMeter& output_rate() const { return output_rate_; }

  // A request was refused before it became a task.
  void note_refused(const Request& request, FinishReason reason);
  void note_preemptions(std::size_t sequences) { counters_.preemptions += sequences; }
  // A step was launched: so many tokens of so many sequences.
  void note_launch(std::uint32_t tokens, std::size_t sequences);
  // A step took so many seconds.
  void note_step(const sched::Step& step, double seconds);
  void note_phase(StepPhase phase, std::int64_t from_ns, std::int64_t to_ns) {
    distributions_.observe_phase(phase, from_ns, to_ns);
  }
  // A request runs for the first time: what the cache had for it is known now.
  void note_start(const OpenSequence& seq);
  // A sequence got its first token, or its next one so long after the one before.
  void note_first_token(const OpenSequence& seq);
  void note_next_token(double gap_s) { distributions_.token_gap_s.observe(gap_s); }
  void note_output(TenantId tenant) {
    ++counters_.output_tokens;
    ++tenants_[tenant].use.output_tokens;
  }
  // A draft of the sequence was verified, or a token of it became output.
  void note_draft(OpenSequence& seq, const DraftCounts& draft);
  void note_drafting(double seconds) { counters_.draft_seconds += seconds; }
  void note_draft_model(double seconds) { counters_.draft_model_seconds += seconds; }
  void note_step_saved() { ++counters_.draft_steps_saved; }
  void note_accepted_at(std::size_t position) { ++counters_.drafts_accepted_at[position]; }
  // A sequence ended; `record.load` says what tiers gave.
  void note_finish(const OpenSequence& seq, FinishReason reason, const SequenceRecord& record);
  // The last sequence of a request ended.
  void note_end(const OpenRequest& request);

 private:
  sched::TenantTable& tenants_;
  Counters counters_;
  Distributions distributions_;
  RateMeter prompt_rate_;
  RateMeter output_rate_;
  std::uint64_t outputs_rated_ = 0;  // output tokens that output_rate_ has counted
};

}  // namespace pagoda::engine
