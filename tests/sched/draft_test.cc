// Draft tokens in the scheduler's accounts: who pays, which blocks they take, and what is left.
#include <gtest/gtest.h>

#include "sched/scheduler.h"

namespace pagoda::sched {
namespace {

class DraftScheduling : public testing::Test {
 protected:
  explicit DraftScheduling(std::uint32_t blocks = 8)
      : cache_({.blocks = blocks, .block_tokens = 4}) {
    SchedulerOptions options;
    options.sequences_max = 4;
    options.batched_tokens_max = 32;
    scheduler_.emplace(options, cache_, tenants_);
  }

  SequenceTask& add(std::uint32_t text, std::uint64_t prompt_tokens,
                    std::uint64_t tokens_max = 60) {
    SequenceTask& task = *tasks_.emplace_back(std::make_unique<SequenceTask>());
    for (std::uint32_t i = 0; i < prompt_tokens; ++i) task.tokens.emplace_back(text * 1000 + i);
    task.prompt_tokens = prompt_tokens;
    task.tokens_max = tokens_max;
    task.scope = cache_.scope("draft", "").value();
    scheduler_->enqueue(task);
    return task;
  }

  // Runs a step in which the last chunk may have drafts, of which so many are accepted; returns how
  // many it had.
  std::uint32_t step(std::uint32_t drafts = 0, std::uint32_t accepted = 0,
                     bool may_take_blocks = true) {
    Step* const step = scheduler_->reserve(scheduler_->plan());
    if (step == nullptr) return 0;
    ScheduledChunk& last = step->chunks.back();
    const std::uint32_t had =
        drafts == 0 ? 0 : scheduler_->add_drafts(last, drafts, may_take_blocks);
    for (const ScheduledChunk& chunk : scheduler_->begin_collect().chunks) {
      ScheduledChunk row = chunk;
      row.tokens -= chunk.drafts;
      row.drafts = 0;
      for (std::uint32_t i = 0; i <= std::min(accepted, chunk.drafts); ++i) {
        if (i > 0) {
          scheduler_->accept_draft(*chunk.task);
          row.first += row.tokens;
          row.tokens = 1;
        }
        scheduler_->commit(row);
        if (chunk.samples) scheduler_->append(*chunk.task, TokenId(1));
      }
      if (chunk.drafts > 0) scheduler_->end_drafts(*chunk.task);
    }
    scheduler_->end_collect();
    scheduler_->check();
    return had;
  }

  kv::Cache cache_;
  TenantTable tenants_;
  std::vector<std::unique_ptr<SequenceTask>> tasks_;
  std::optional<Scheduler> scheduler_;
};

TEST_F(DraftScheduling, AcceptedTokensAreTheSequencesAndTheTenantPaysForAll) {
  SequenceTask& task = add(1, 6);
  step();
  const double clock = tenants_[TenantId(0)].clock;
  EXPECT_EQ(step(5, 3), 5u);
  EXPECT_EQ(task.tokens.size(), 6u + 1u + 4u);
  EXPECT_EQ(task.tokens_computed(), 10u);
  EXPECT_EQ(task.tokens_behind(), 1u);
  EXPECT_EQ(tenants_[TenantId(0)].clock - clock, 6.0) << "one token and five drafts";
  EXPECT_EQ(tenants_[TenantId(0)].kv_tokens_held, task.length());
}

TEST_F(DraftScheduling, RejectedDraftsLeaveNoBlockBehind) {
  SequenceTask& task = add(1, 6);
  step();
  const std::uint64_t free = cache_.pool().blocks_free();
  EXPECT_EQ(step(12, 0), 12u);
  EXPECT_EQ(task.tokens_computed(), 7u);
  EXPECT_EQ(cache_.pool().blocks_free(), free);
  EXPECT_EQ(cache_.match(*task.scope, task.tokens).tokens, 7u) << "rows of drafts are not found";
}

TEST_F(DraftScheduling, DraftsAreShorterWhereNoBlockIsFree) {
  add(1, 6);
  step();
  EXPECT_EQ(step(30, 0, false), 1u) << "7 tokens: the second block has room for one more";
  EXPECT_EQ(step(30, 0), 24u) << "six blocks are free";
}

TEST_F(DraftScheduling, NothingIsEvictedForADraft) {
  scheduler_->finish(add(2, 9, 10));
  SequenceTask& gone = add(3, 12);
  step();
  scheduler_->finish(gone);
  scheduler_->check();
  SequenceTask& task = add(1, 14);
  step();
  ASSERT_LT(cache_.pool().blocks_free(), 4u);
  ASSERT_GT(cache_.blocks_available(), cache_.pool().blocks_free());
  const std::uint64_t evicted = cache_.stats().blocks_evicted;
  step(30, 0);
  EXPECT_EQ(cache_.stats().blocks_evicted, evicted);
  EXPECT_EQ(task.tokens_computed(), 15u);
}

TEST_F(DraftScheduling, ASequenceWaitsUntilItsDraftIsCollected) {
  SequenceTask& task = add(1, 6);
  step();
  Step* const launched = scheduler_->reserve(scheduler_->plan());
  scheduler_->add_drafts(launched->chunks.back(), 3, true);
  EXPECT_EQ(task.tokens_behind(), 0u);
  EXPECT_EQ(task.length(), 8u) << "seven tokens and the one that is being sampled";
}

}  // namespace
}  // namespace pagoda::sched
