// Replies of the engine: tokens as they are sampled, then one record per sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/token_id.h"
#include "engine/draft_counts.h"
#include "engine/finish_reason.h"
#include "engine/sampled_token.h"
#include "engine/tiers/load_record.h"
#include "engine/turn_estimate.h"
#include "kv/explanation.h"

namespace pagoda::engine {

// TokenGaps are the times between a sequence's tokens.
struct TokenGaps {
  std::uint64_t count = 0;
  std::int64_t sum_ns = 0;
  std::int64_t max_ns = 0;
};

// RetainOutcome says whether whole blocks of the prompt are retained, or why not.
struct RetainOutcome {
  std::uint64_t tokens = 0;
  std::uint64_t blocks = 0;
  std::string refused;     // empty: granted
  std::string limit = {};  // what clipped a breakpoint; empty: all that was asked for is retained
};

// HandoverOutcome says how much of a prompt other servers find (Request::hands_over).
struct HandoverOutcome {
  std::uint64_t tokens = 0;  // of whole blocks, from the first
  std::string missing = {};  // why not every whole block; empty: all of them
};

// SequenceRecord describes a sequence's life in numbers. Times of phases that were not reached are
// 0.
struct SequenceRecord {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t prompt_tokens_cached = 0;    // found in the cache when it first ran
  std::uint64_t prompt_tokens_computed = 0;  // counted again after a preemption
  std::uint64_t prompt_tokens_written = 0;   // computed, and left in the cache for others to find
  std::uint64_t output_tokens = 0;
  std::uint32_t preemptions = 0;
  std::uint64_t seed = 0;  // of the sequence's random numbers
  std::int64_t arrived_ns = 0;
  std::int64_t started_ns = 0;  // when its first token was launched
  std::int64_t first_token_ns = 0;
  std::int64_t finished_ns = 0;
  TokenGaps gaps;
  LoadRecord load;                              // tokens from other tiers
  std::optional<RetainOutcome> retain;          // where asked for, once the prompt was computed
  std::vector<RetainOutcome> breakpoints = {};  // one for each, once the prompt was computed
  std::optional<kv::Explanation> explanation;   // where asked for, once the sequence ran
  std::optional<TurnEstimate> estimate = {};    // of requests that are explained alone
  std::uint64_t blocks_demoted = 0;             // by CacheAction::kDemote
  std::vector<float> embedding = {};            // where pooling was asked for
  DraftCounts drafts = {};
  std::optional<HandoverOutcome> handover = {};  // where asked for, of the first sequence

  double queue_s() const { return since_arrival(started_ns); }
  double first_token_s() const { return since_arrival(first_token_ns); }
  double total_s() const { return since_arrival(finished_ns); }

 private:
  double since_arrival(std::int64_t ns) const {
    return ns == 0 ? 0.0 : static_cast<double>(ns - arrived_ns) * 1e-9;
  }
};

struct OutputToken {
  TokenId token;
  bool ends = false;  // true: an end or stop token, the sequence's last and no part of its text
  const TokenScore* score = nullptr;       // nullptr unless log-probabilities were asked for
  std::uint64_t prompt_tokens_cached = 0;  // as in the sequence's record
};

// Sinks are called on the engine's thread: they must not block and must not call back into the
// engine's step.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // Asked before every step: while false, the request's sequences get no tokens of the step. The
  // caller that makes it true again wakes the engine (Engine::wake).
  virtual bool wants_more() const { return true; }
  // Receives scores of prompt tokens 1, 2, …, in order and in pieces, before the first output
  // token.
  virtual void on_prompt_logprobs(std::span<const TokenScore> /*scores*/) {}
  virtual void on_token(std::uint32_t sequence, const OutputToken& chosen) = 0;
  // Called once per sequence. `message` says more for kRefused, kError, kLost
  // and kNoToken.
  virtual void on_finish(std::uint32_t sequence, FinishReason reason, const SequenceRecord& record,
                         const std::string& message) = 0;
};

}  // namespace pagoda::engine
