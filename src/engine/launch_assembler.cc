#include "engine/launch_assembler.h"

#include <algorithm>
#include <optional>
#include <span>

namespace pagoda::engine {

LaunchAssembler::LaunchAssembler(std::size_t groups, std::size_t sequences_max) : groups_(groups) {
  rows_.reserve(sequences_max);
  samples_.reserve(sequences_max);
  tables_.reserve(sequences_max * groups);
}

// The next two are inline because every sequence of every step passes them.
// A position is scored once, by the first launch that computes the token before it.
inline void LaunchAssembler::add_scores(OpenSequence& seq, const sched::ScheduledChunk& chunk) {
  const std::optional<std::uint32_t>& scored = seq.request->asked.sampling.prompt_logprobs;
  if (!scored) return;
  for (std::uint32_t i = 0; i < chunk.tokens; ++i) {
    const std::uint64_t next = chunk.first + i + 1;
    if (next >= seq.prompt_tokens || next <= seq.scores_launched) continue;
    scores_.push_back({.row = row_count_ + i,
                       .token = seq.tokens[next],
                       .top = *scored,
                       .position = next,
                       .reader = seq.request->asked.prompt_logits.get()});
    seq.scores_launched = next;
  }
}

// Sequences that have yet to fork from this one sample by the same logits.
inline void LaunchAssembler::add_samples(OpenSequence& seq, const sched::ScheduledChunk& chunk) {
  for (std::uint32_t i = 0; i < seq.sequence_count; ++i) {
    OpenSequence& sampled = *seq.request->sequences[seq.index + i];
    samples_.push_back({.handle = &sampled,
                        .row = row_count_ + chunk.tokens - chunk.drafts - 1,
                        .position = chunk.first + chunk.tokens - chunk.drafts,
                        .sampling = &sampled.sampling,
                        .drafts = std::span(sampled.draft).first(chunk.drafts)});
  }
}

// A token's hidden state is pooled once, by the first launch that computes it.
inline void LaunchAssembler::add_hidden(OpenSequence& seq, const sched::ScheduledChunk& chunk) {
  const Pooling pooling = seq.request->asked.pooling;
  if (pooling == Pooling::kNone || seq.hidden_launched == seq.prompt_tokens) return;
  const std::uint64_t end = std::min<std::uint64_t>(chunk.first + chunk.tokens, seq.prompt_tokens);
  std::uint64_t token = std::max<std::uint64_t>(chunk.first, seq.hidden_launched);
  if (pooling == Pooling::kLast) token = std::max(token, seq.prompt_tokens - 1);
  for (; token < end; ++token) {
    hidden_rows_.push_back(row_count_ + static_cast<std::uint32_t>(token - chunk.first));
    seq.hidden_launched = token + 1;
  }
}

// The last tables are those of the sequence: what it has dropped is left out of them.
kv::memory::SelectedPages LaunchAssembler::select_pages(OpenSequence& seq,
                                                        const sched::ScheduledChunk& chunk) {
  const sched::PageDrops& drops = *seq.drops;
  kv::PageSelection& selection = *seq.sequence->selection();
  const std::size_t first = tokens_dropped_.size();
  const std::uint64_t end = chunk.first + chunk.tokens;
  const bool once = drops.policy.choice == kv::PageChoice::kSnapKv;
  const std::uint64_t observed_begin = drops.policy.first_observed(drops.prompt_tokens);
  const std::uint64_t observed_end = once ? std::min(end, drops.prompt_tokens) : end;
  const bool observes = std::max(chunk.first, observed_begin) < observed_end;
  for (std::uint32_t group = 0; group < groups_; ++group) {
    const bool is_observed = observes && seq.scope->groups()[group].window == 0;
    tokens_dropped_.push_back(selection.tokens_dropped(group));
    counters_.push_back(is_observed ? selection.counters(group, end) : nullptr);
    if (selection.blocks_dropped(group) == 0) continue;
    kept_tables_.emplace_back();
    const std::span<const kv::BlockId> table = seq.sequence->table(group);
    for (std::uint64_t block = 0; block < table.size(); ++block) {
      if (!selection.is_dropped(group, block)) kept_tables_.back().push_back(table[block]);
    }
    tables_[tables_.size() - groups_ + group] = kept_tables_.back().data();
  }
  const auto counters = std::span<std::uint64_t* const>(counters_);
  return {
      .tokens_dropped = std::span<const std::uint64_t>(tokens_dropped_).subspan(first, groups_),
      .observed_begin = observed_begin,
      .observed_end = observed_end,
      .counters = observes ? counters.subspan(first, groups_) : std::span<std::uint64_t* const>()};
}

void LaunchAssembler::add(const sched::ScheduledChunk& chunk) {
  OpenSequence& seq = static_cast<OpenSequence&>(*chunk.task);
  const std::size_t first_table = tables_.size();
  for (std::uint32_t group = 0; group < groups_; ++group) {
    tables_.push_back(seq.sequence->table(group).data());
  }
  const kv::memory::SelectedPages selected =
      seq.drops ? select_pages(seq, chunk) : kv::memory::SelectedPages{};
  const std::uint64_t known =
      std::min<std::uint64_t>(chunk.tokens - chunk.drafts, seq.tokens.size() - chunk.first);
  rows_.push_back({.handle = &seq,
                   .rows = chunk.tokens,
                   .first_position = chunk.first,
                   .tokens = std::span(seq.tokens).subspan(chunk.first, known),
                   .tables = std::span(tables_).subspan(first_table, groups_),
                   .policy = seq.scope->policy().attention(),
                   .drafts = std::span(seq.draft).first(chunk.drafts),
                   .selected = selected});
  if (seq.index == 0) add_scores(seq, chunk);
  add_hidden(seq, chunk);
  if (chunk.samples) add_samples(seq, chunk);
  row_count_ += chunk.tokens;
}

Launch LaunchAssembler::assemble(const sched::Step& step) {
  rows_.clear();
  samples_.clear();
  scores_.clear();
  hidden_rows_.clear();
  tables_.clear();
  // Rows point into these while they are gathered, so that the vectors must not grow.
  tables_.reserve(step.chunks.size() * groups_);
  kept_tables_.clear();
  tokens_dropped_.clear();
  tokens_dropped_.reserve(step.chunks.size() * groups_);
  counters_.clear();
  counters_.reserve(step.chunks.size() * groups_);
  row_count_ = 0;
  for (const sched::ScheduledChunk& chunk : step.chunks) add(chunk);
  return {step.copies, rows_, samples_, scores_, hidden_rows_};
}

}  // namespace pagoda::engine
