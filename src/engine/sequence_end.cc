#include "engine/sequence_end.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/tiers/tiers.h"

namespace pagoda::engine {
namespace {

bool is_handed_over(const OpenSequence& seq) {
  return seq.request->asked.hands_over && seq.index == 0;
}

}  // namespace

SequenceRecord record_of(const OpenSequence& seq, const LoadRecord& load, std::int64_t now_ns) {
  const OpenRequest& request = *seq.request;
  const std::uint64_t prompt = request.sequences.front()->prompt_tokens;
  SequenceRecord record = {.prompt_tokens = prompt,
                           .prompt_tokens_cached = seq.tokens_cached,
                           .prompt_tokens_computed = seq.prompt_tokens_computed,
                           .prompt_tokens_written = 0,
                           .output_tokens = seq.tokens.empty() ? 0 : seq.tokens.size() - prompt,
                           .preemptions = seq.preemptions,
                           .seed = seq.sampling.options().seed,
                           .arrived_ns = request.arrived_ns,
                           .started_ns = seq.started_ns,
                           .first_token_ns = seq.first_token_ns,
                           .finished_ns = now_ns,
                           .gaps = seq.gaps,
                           .load = load,
                           .retain = request.retain,
                           .breakpoints = request.breakpoints,
                           .explanation = {}};
  if (seq.hidden_taken == prompt && !seq.hidden_sum.empty()) {
    const double tokens =
        request.asked.pooling == Pooling::kMean ? static_cast<double>(prompt) : 1.0;
    for (const double sum : seq.hidden_sum) {
      record.embedding.push_back(static_cast<float>(sum / tokens));
    }
  }
  record.drafts = seq.draft_counts;
  if (request.asked.explain && seq.started_ns != 0) {
    record.explanation = request.sequences.front()->explanation;
  }
  return record;
}

std::vector<kv::NodeId> blocks_to_hand_over(const OpenSequence& seq, FinishReason reason,
                                            std::uint64_t block_tokens) {
  const bool answered = reason == FinishReason::kStop || reason == FinishReason::kLength ||
                        reason == FinishReason::kContext;
  if (!is_handed_over(seq) || !answered || !seq.sequence) return {};
  const std::span<const kv::NodeId> nodes = seq.sequence->nodes();
  const auto whole =
      nodes.first(std::min<std::size_t>(nodes.size(), seq.prompt_tokens / block_tokens));
  return {whole.begin(), whole.end()};
}

void tell_end(OpenSequence& seq, SequenceEnd end, const kv::Cache& cache, Tiers* tiers,
              std::int64_t now_ns) {
  ReplySink& sink = *seq.request->sink;
  const bool is_asked = is_handed_over(seq);
  if (!is_asked || tiers == nullptr) {
    if (is_asked)
      end.record.handover = HandoverOutcome{.missing = "no store is shared with others"};
    return sink.on_finish(seq.index, end.reason, end.record, end.message);
  }
  Handover handover;
  for (const kv::NodeId node : end.whole_blocks) {
    handover.hashes.push_back(cache.hashes().of(node));
  }
  handover.nodes = std::move(end.whole_blocks);
  handover.groups.assign(seq.scope->groups().begin(), seq.scope->groups().end());
  handover.done = [sink = seq.request->sink, index = seq.index, reason = end.reason,
                   record = std::move(end.record),
                   message = std::move(end.message)](HandoverOutcome outcome) mutable {
    record.handover = std::move(outcome);
    sink->on_finish(index, reason, record, message);
  };
  tiers->hand_over(std::move(handover), now_ns);
}

}  // namespace pagoda::engine
