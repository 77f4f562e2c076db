// LaunchAssembler turns a scheduler's step into a launch for the runner: tokens and block tables of
// each chunk, samples of the chunks that reach their last token, scores of prompt tokens.
//
// Thread rule: the engine's thread. Memory is kept from step to step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/open_request.h"
#include "engine/runner.h"
#include "kv/memory/view.h"
#include "sched/scheduler.h"

namespace pagoda::engine {

class LaunchAssembler {
 public:
  // `groups`: KV cache groups, each with a block table of its own.
  LaunchAssembler(std::size_t groups, std::size_t sequences_max);

  // The step's tasks are OpenSequences. Valid until the next call, and as long as their tokens and
  // block tables do not change. Notes which prompt positions are being scored.
  Launch assemble(const sched::Step& step);

  // Returns how many tokens the last launch has.
  std::uint32_t tokens() const { return row_count_; }

 private:
  void add(const sched::ScheduledChunk& chunk);
  kv::memory::SelectedPages select_pages(OpenSequence& seq, const sched::ScheduledChunk& chunk);
  void add_scores(OpenSequence& seq, const sched::ScheduledChunk& chunk);
  void add_hidden(OpenSequence& seq, const sched::ScheduledChunk& chunk);
  void add_samples(OpenSequence& seq, const sched::ScheduledChunk& chunk);

  const std::size_t groups_;
  std::vector<LaunchRows> rows_;
  std::vector<LaunchSample> samples_;
  std::vector<LaunchScore> scores_;
  std::vector<std::uint32_t> hidden_rows_;
  std::vector<kv::memory::BlockTable> tables_;
  // Tables and counters of sequences whose KV policy selects pages.
  std::deque<std::vector<kv::BlockId>> kept_tables_;
  std::vector<std::uint64_t> tokens_dropped_;  // [chunk, group]
  std::vector<std::uint64_t*> counters_;
  std::uint32_t row_count_ = 0;
};

}  // namespace pagoda::engine
