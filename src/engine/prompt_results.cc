#include "engine/prompt_results.h"

#include <algorithm>

namespace pagoda::engine {

void take_scores(OpenSequence& seq, const sched::ScheduledChunk& rows,
                 std::span<const TokenScore>& scores) {
  const std::uint64_t end =
      std::min<std::uint64_t>(rows.first + rows.tokens + 1, seq.prompt_tokens);
  if (!seq.request->asked.sampling.prompt_logprobs || seq.index != 0) return;
  if (end <= seq.scores_taken + 1) return;
  const std::size_t count = end - 1 - seq.scores_taken;
  const bool ended = seq.state == sched::TaskState::kFinished;
  if (!ended) seq.request->sink->on_prompt_logprobs(scores.first(count));
  seq.scores_taken += count;
  scores = scores.subspan(count);
  // Once all scores are known, the cache may serve the sequence like any other.
  if (seq.scores_taken + 1 == seq.prompt_tokens) seq.compute_whole_prompt = false;
}

void take_hidden(OpenSequence& seq, const sched::ScheduledChunk& rows, std::size_t width,
                 std::span<const float>& hidden) {
  const Pooling pooling = seq.request->asked.pooling;
  if (pooling == Pooling::kNone || seq.hidden_taken == seq.prompt_tokens) return;
  const std::uint64_t end = std::min<std::uint64_t>(rows.first + rows.tokens, seq.prompt_tokens);
  std::uint64_t token = std::max<std::uint64_t>(rows.first, seq.hidden_taken);
  if (pooling == Pooling::kLast) token = std::max(token, seq.prompt_tokens - 1);
  for (; token < end; ++token) {
    seq.hidden_sum.resize(width, 0);
    for (std::size_t i = 0; i < width; ++i) seq.hidden_sum[i] += hidden[i];
    hidden = hidden.subspan(width);
    seq.hidden_taken = token + 1;
  }
  if (seq.hidden_taken == seq.prompt_tokens) seq.compute_whole_prompt = false;
}

}  // namespace pagoda::engine
