// DraftModel proposes draft tokens by a smaller model that has the same vocabulary.
//
// It computes the tokens of the sequences it drafts for in a KV cache of its own, so that a prompt
// that it has seen is not computed again. It never delays a step for long: of a sequence that it
// does not know yet it computes a few tokens a step, and drafts once it has caught up. Where its
// cache has no room, it drafts nothing. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/token_id.h"
#include "engine/runner.h"
#include "engine/sampler.h"
#include "kv/cache.h"
#include "speculate/row_costs.h"

namespace pagoda::engine {

class DraftModel;

// DraftedSequence is what the draft model has computed of one sequence.
class DraftedSequence {
 public:
  // The model must outlive the sequence.
  DraftedSequence(DraftModel& model, kv::CacheScope scope);
  ~DraftedSequence();
  DraftedSequence(const DraftedSequence&) = delete;
  DraftedSequence& operator=(const DraftedSequence&) = delete;

 private:
  friend class DraftModel;

  DraftModel& model_;
  kv::CacheScope scope_;
  std::optional<kv::Sequence> sequence_;  // nothing: it has no blocks
  // Tokens whose rows are written behind those that are committed: drafts are among them.
  std::vector<TokenId> written_;
  std::uint64_t step_ = 0;            // the last one that drafted for it
  std::uint64_t tokens_checked_ = 0;  // that the draft model's vocabulary has
  bool is_foreign_ = false;           // a token is not in it
  std::uint32_t looks_to_skip_ = 0;   // before it asks for room again
};

struct DraftModelOptions {
  std::string space;  // the namespace of its cache
  std::uint32_t vocabulary = 0;
  std::uint64_t context_tokens = 0;
  std::uint32_t rows_max = 0;  // of a launch
};

class DraftModel {
 public:
  // Cache and runner must outlive the object; nobody else uses them.
  DraftModel(DraftModelOptions options, kv::Cache& cache, Runner& runner);

  const DraftModelOptions& options() const { return options_; }

  // Returns the scope of a request's sequences: what is computed for a salt is found under that
  // salt alone.
  kv::CacheScope scope(std::string_view salt, kv::OwnerId owner);

  // Begins a step of the engine: what was measured long ago is forgotten.
  void begin_step();
  // Returns how many of the sequence's tokens are not computed here; the first call for a sequence,
  // and one that lacks much, looks for it in the cache. Nothing: it cannot be drafted for now.
  std::optional<std::uint64_t> tokens_missing(DraftedSequence& drafted,
                                              std::span<const TokenId> tokens);

  // The sequence is in use: others are closed before it where room is wanted.
  void touch(DraftedSequence& drafted) const { drafted.step_ = step_; }
  // True: the sequence lacks at most so many of these tokens, and could be drafted for.
  bool is_near(const DraftedSequence& drafted, std::span<const TokenId> tokens,
               std::uint64_t missing_max) const;

  struct Job {
    DraftedSequence* drafted = nullptr;
    std::span<const TokenId> tokens;  // prompt and output
    std::uint32_t drafts = 0;         // that are wanted; 0: only what is missing is computed
    // The state by which tokens are chosen (SamplingState::for_drafts); nothing without drafts.
    std::optional<SamplingState> sampling = {};
    std::vector<TokenId>* draft = nullptr;  // gets up to `drafts` tokens
  };
  // Drafts for all jobs together, a token of each in a launch. Jobs that only catch up compute
  // `catch_up_tokens` tokens in all.
  void draft(std::span<Job> jobs, std::uint64_t catch_up_tokens, const Clock& clock);

  // Returns what launches cost by their rows, of which each gives a draft token; nullptr: that is
  // not measured.
  const speculate::RowCosts* costs() const { return is_measured_ ? &costs_ : nullptr; }
  // Returns how many missing tokens are computed in so many seconds; some in any case.
  std::uint64_t tokens_in(double seconds) const;

  // Evicts what is idle in an owner's private regions, or everything.
  void clear(std::optional<kv::OwnerId> owner) { cache_.clear(owner); }
  // Ends an owner's private regions.
  void retire(kv::OwnerId owner) { cache_.retire(owner); }

 private:
  friend class DraftedSequence;

  static constexpr std::uint64_t kLookAgainTokens = 64;  // that are missing
  static constexpr std::uint32_t kLooksSkipped = 64;     // by a sequence that found no room
  static constexpr std::uint64_t kForgetSteps = 512;     // without a draft

  // The tokens of a job that the next launch computes.
  struct Fed {
    Job* job;
    std::span<const TokenId> tokens;
    std::uint64_t first = 0;
    bool samples = false;
  };

  bool has_all(DraftedSequence& drafted, std::span<const TokenId> tokens) const;
  void open(DraftedSequence& drafted, std::span<const TokenId> tokens);
  void find_more(DraftedSequence& drafted, std::span<const TokenId> tokens);
  void commit_accepted(DraftedSequence& drafted, std::span<const TokenId> tokens);
  bool reserve(DraftedSequence& drafted, std::uint64_t tokens);
  bool close_idle();
  void give_up(DraftedSequence& drafted);
  void feed_missing(std::span<Job> jobs, std::uint64_t catch_up_tokens);
  // False: its time says nothing about such launches.
  bool launch();
  void take(const Fed& fed, const Result<SampledToken>* sample, bool is_finite);

  DraftModelOptions options_;
  kv::Cache& cache_;
  Runner& runner_;
  std::uint64_t catch_up_tokens_min_;
  std::vector<DraftedSequence*> sequences_;  // all that there are
  std::uint64_t step_ = 0;
  speculate::RowCosts costs_;  // of launches in which all rows are sampled
  bool is_measured_ = false;
  std::uint64_t steps_unmeasured_ = 0;  // since the last measurement
  double missing_token_seconds_ = 0;    // of a token that is caught up with; 0: not measured
  // The parts of the next launch.
  std::vector<Fed> fed_;
  std::vector<kv::Copy> copies_;
  std::vector<LaunchRows> rows_;
  std::vector<LaunchSample> samples_;
  std::vector<kv::memory::BlockTable> tables_;
};

}  // namespace pagoda::engine
