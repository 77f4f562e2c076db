// ToyRunner computes the toy model over pages, as late as allowed: a launch is computed when it is
// collected, so that a block which is released too early shows.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "engine/runner.h"
#include "sim/toy_model.h"

namespace pagoda::sim {

// Sabotage is a broken promise; tests see that it shows.
enum class Sabotage : std::uint8_t {
  kNone,
  kStaleBlock,     // a copy is not done
  kForeignBlock,   // a table names another sequence's block
  kShiftedRows,    // a copy is off by one row
  kFreedTooEarly,  // a block that a launch reads is overwritten
};

class ToyRunner : public engine::Runner {
 public:
  ToyRunner(const ToyModel& model, std::uint32_t blocks, std::uint32_t block_tokens,
            std::uint32_t launches_ahead);

  std::uint32_t launches_ahead() const override { return launches_ahead_; }
  std::uint32_t drafts_max() const override { return drafts_max_; }
  void set_drafts_max(std::uint32_t drafts) { drafts_max_ = drafts; }
  void launch(const engine::Launch& launch) override;
  engine::Collected collect() override;

  // Returns the bytes of a block's rows.
  std::span<std::byte> page(kv::BlockId block) {
    return std::as_writable_bytes(
        std::span(pages_).subspan(std::size_t{block.value()} * block_tokens_, block_tokens_));
  }
  // [block]: true where a launch that is not collected reads or writes the block.
  std::vector<bool> blocks_touched() const;
  // Nobody owns the block: its rows become garbage at once.
  void spoil(kv::BlockId block);
  void sabotage(Sabotage kind) { sabotage_ = kind; }
  bool sabotaged() const { return sabotaged_; }
  std::uint64_t tokens_computed() const { return rows_computed_; }

 protected:
  const ToyModel& model() const { return model_; }
  // Returns the token behind a row that a job samples.
  virtual TokenId choose(const engine::LaunchSample& job, Digest seen) const;

 private:
  struct Rows {
    engine::SequenceHandle handle;
    std::uint32_t rows;
    std::uint64_t first_position;
    std::vector<TokenId> tokens;
    std::vector<std::vector<kv::BlockId>> tables;
    kv::memory::AttentionSpec policy;
    std::vector<std::uint64_t> tokens_dropped;  // [group]
    std::vector<std::uint64_t*> counters;       // [group], or empty
    std::uint64_t observed_begin;
    std::uint64_t observed_end;
  };
  struct Pending {
    std::vector<kv::Copy> copies;
    std::vector<Rows> rows;
    std::vector<engine::LaunchSample> samples;
    std::vector<std::vector<TokenId>> drafts;  // [sample]
    std::vector<engine::LaunchScore> scores;
  };

  Digest& at(kv::BlockId block, std::uint64_t token) {
    return pages_[block.value() * block_tokens_ + token];
  }
  void copy(const kv::Copy& copy);
  void compute(Rows& rows, std::vector<Digest>& seen);
  void sample(const engine::LaunchSample& job, std::span<const TokenId> drafts,
              std::span<const Digest> seen);
  void observe(const Rows& rows, std::uint64_t position);
  Digest& row_at(const Rows& rows, std::uint32_t group, std::uint64_t slot) {
    return at(rows.tables[group][slot / block_tokens_], slot % block_tokens_);
  }
  void break_something(Pending& pending);

  ToyModel model_;
  std::uint32_t block_tokens_;
  std::uint32_t launches_ahead_;
  std::vector<Digest> pages_;
  std::deque<Pending> pending_;
  std::map<engine::SequenceHandle, TokenId> last_chosen_;
  std::vector<Result<engine::SampledToken>> samples_;
  std::vector<engine::TokenScore> scores_;
  Sabotage sabotage_ = Sabotage::kNone;
  bool sabotaged_ = false;
  std::uint64_t rows_computed_ = 0;
  std::uint32_t drafts_max_ = 0;
};

// ToyDraftRunner computes the draft model: as the toy model for the first sequence of a request,
// with a wrong token now and then; the forks of a request would draw others.
class ToyDraftRunner final : public ToyRunner {
 public:
  using ToyRunner::ToyRunner;

 private:
  TokenId choose(const engine::LaunchSample& job, Digest seen) const override;
};

}  // namespace pagoda::sim
