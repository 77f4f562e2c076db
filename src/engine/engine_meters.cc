#include "engine/engine_meters.h"

#include <algorithm>

#include "base/clock.h"

namespace pagoda::engine {

void EngineMeters::note_refused(const Request& request, FinishReason reason) {
  ++counters_.requests_refused;
  ++tenants_[request.tenant].use.requests_refused;
  counters_.sequences_finished[static_cast<std::size_t>(reason)] += request.sampling.n;
}

void EngineMeters::note_launch(std::uint32_t tokens, std::size_t sequences) {
  distributions_.step_tokens.observe(tokens);
  ++counters_.steps;
  counters_.tokens_computed += tokens;
  counters_.sequences_stepped += sequences;
}

void EngineMeters::note_step(const sched::Step& step, double seconds) {
  distributions_.step_s.observe(seconds);
  if (step.predicted_s > 0) distributions_.step_predicted_s.observe(step.predicted_s);
  output_rate_.add(static_cast<double>(counters_.output_tokens - outputs_rated_), seconds);
  outputs_rated_ = counters_.output_tokens;
  // A step of fewer tokens of prompts, or with more others than these, says how fast outputs are
  // decoded, not how fast prompts are prefilled.
  constexpr std::uint64_t kPromptTokensLeast = 16;
  std::uint64_t all = 0;
  std::uint64_t of_prompts = 0;
  for (const sched::ScheduledChunk& chunk : step.chunks) {
    all += chunk.tokens;
    if (chunk.drafts == 0 && chunk.tokens > 1) of_prompts += chunk.tokens;
  }
  if (of_prompts < kPromptTokensLeast || of_prompts * 2 <= all) return;
  prompt_rate_.add(static_cast<double>(of_prompts), seconds);
}

void EngineMeters::note_start(const OpenSequence& seq) {
  counters_.misses.add(seq.explanation);
  if (seq.compute_whole_prompt) return;
  LookupCounts& lookups = counters_.lookups;
  lookups.tokens_asked += seq.prompt_tokens;
  lookups.tokens_found += seq.tokens_cached;
  const bool whole = seq.tokens_cached + 1 == seq.prompt_tokens;
  ++(seq.tokens_cached == 0 ? lookups.none : whole ? lookups.whole : lookups.part);
}

void EngineMeters::note_first_token(const OpenSequence& seq) {
  distributions_.first_token_s.observe(
      seconds_between(seq.request->arrived_ns, seq.first_token_ns));
  if (seq.index != 0) return;  // a prompt counts once
  counters_.prompt_tokens += seq.prompt_tokens;
  counters_.prompt_tokens_cached += seq.tokens_cached;
  sched::TenantUse& use = tenants_[seq.tenant].use;
  use.prompt_tokens += seq.prompt_tokens;
  use.prompt_tokens_cached += seq.tokens_cached;
}

void EngineMeters::note_draft(OpenSequence& seq, const DraftCounts& draft) {
  seq.draft_counts.add(draft);
  counters_.drafts.add(draft);
}

void EngineMeters::note_finish(const OpenSequence& seq, FinishReason reason,
                               const SequenceRecord& record) {
  for (std::size_t i = 0; i < kTiersMax; ++i) {
    counters_.prompt_tokens_loaded[i] += record.load.tokens[i];
  }
  counters_.load_seconds_waited += record.load.waited_s;
  counters_.load_seconds_saved += record.load.saved_s;
  ++counters_.sequences_finished[static_cast<std::size_t>(reason)];
  counters_.context_tokens_longest =
      std::max<std::uint64_t>(counters_.context_tokens_longest, seq.tokens.size());
  if (ended_well(reason) && seq.first_token_ns != 0) distributions_.observe_sequence(record);
}

void EngineMeters::note_end(const OpenRequest& request) {
  ++counters_.requests_finished;
  ++tenants_[request.asked.tenant].use.requests_finished;
  const std::uint64_t prompt = request.sequences.front()->prompt_tokens;
  std::uint64_t longest = 0;
  for (const auto& seq : request.sequences) {
    longest = std::max<std::uint64_t>(longest, seq->tokens.size());
  }
  distributions_.prompt_tokens.observe(static_cast<double>(prompt));
  distributions_.output_tokens_longest.observe(static_cast<double>(longest - prompt));
  distributions_.sequences_asked.observe(request.asked.sampling.n);
  if (request.asked.end.max_tokens) {
    distributions_.tokens_asked.observe(*request.asked.end.max_tokens);
  }
}

}  // namespace pagoda::engine
