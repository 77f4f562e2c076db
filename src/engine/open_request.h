// OpenRequest is a request inside the engine: its sequences as the scheduler's tasks, and the sink
// they report to.
#pragma once

#include <memory>
#include <vector>

#include "engine/draft_counts.h"
#include "engine/draft_model.h"
#include "engine/reply.h"
#include "engine/request.h"
#include "engine/sampler.h"
#include "sched/sequence_task.h"
#include "speculate/drafter.h"

namespace pagoda::engine {

struct OpenRequest;

struct OpenSequence final : sched::SequenceTask {
  explicit OpenSequence(SamplingState first) : sampling(std::move(first)) {}

  OpenRequest* request = nullptr;
  std::uint32_t index = 0;
  SamplingState sampling;
  std::unique_ptr<speculate::SequenceDrafting> drafting = {};  // nullptr: nothing is drafted
  std::unique_ptr<DraftedSequence> drafted = {};  // nullptr: no draft model drafts for it
  // The draft tokens of the launch that runs; of one without drafts, those that were found last.
  std::vector<TokenId> draft = {};
  DraftCounts draft_counts = {};
  std::uint64_t scores_launched = 0;  // the last prompt position scored, or being scored
  std::uint64_t scores_taken = 0;
  std::uint64_t hidden_launched = 0;  // tokens whose hidden states are pooled, or being computed
  std::uint64_t hidden_taken = 0;
  std::vector<double> hidden_sum = {};  // of the hidden states taken so far, in their order
  std::int64_t started_ns = 0;
  std::int64_t first_token_ns = 0;
  std::int64_t last_token_ns = 0;
  TokenGaps gaps;
};

struct OpenRequest {
  RequestId id;
  Request asked;
  std::shared_ptr<ReplySink> sink;
  std::int64_t arrived_ns = 0;
  std::vector<std::unique_ptr<OpenSequence>> sequences;
  std::uint32_t sequences_left = 0;  // sequences that are not finished
  std::optional<RetainOutcome> retain;
  std::vector<RetainOutcome> breakpoints = {};
  bool is_cancelled = false;  // of a prefetch: nobody waits for it any more
};

}  // namespace pagoda::engine
