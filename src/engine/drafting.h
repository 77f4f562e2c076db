// Drafting gives sequences of a step draft tokens, and keeps what became of them.
//
// Drafts come last: what a step computes without them is reserved before, and they share the token
// budget that is left. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "engine/draft_model.h"
#include "engine/engine_meters.h"
#include "engine/open_request.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "kv/cache.h"
#include "sched/scheduler.h"
#include "speculate/speculator.h"

namespace pagoda::engine {

struct DraftingOptions {
  speculate::SpeculationOptions speculation = {};
  speculate::Drafter* drafter = nullptr;  // for measurements and tests: see Speculator
  DraftModel* model = nullptr;            // must outlive the object; nullptr: there is none
  std::uint32_t vocabulary = 0;
};

class Drafting {
 public:
  // All must outlive the object.
  Drafting(const DraftingOptions& options, const kv::Cache& cache, sched::Scheduler& scheduler,
           const Runner& runner, EngineMeters& meters, const Clock& clock);

  const speculate::Speculator& speculator() const { return speculator_; }

  // Decides for all sequences of a request whether something may be drafted for them.
  void open(OpenRequest& open, const Request& request);
  // True: a launch runs, and drafts that follow the tokens it samples are worth it that the next
  // one waits for these. Looks for drafts while the device computes.
  bool awaits_tokens();
  // Adds draft tokens to chunks of a step that is about to be launched by this plan.
  void add_drafts(sched::Step& step, const sched::Plan& plan);
  // So many tokens of the sequence's draft are what it goes on with, unless it ends before.
  void note_verified(OpenSequence& seq, std::uint32_t drafted, std::uint32_t accepted);
  // Token `position` of the draft that was verified last becomes a token of the output.
  void note_accepted(OpenSequence& seq, std::uint32_t position);
  // Once a step is launched: the draft model computes what it lacks while the device computes the
  // launch before.
  void catch_up(const sched::Step& step);
  // Returns the seconds that the draft model took in the last add_drafts().
  double model_seconds() const { return model_seconds_; }
  // The step took so long: steps in which all rows have logits, as rows of drafts have, tell what
  // rows cost.
  void note_step(const sched::Step& step, double seconds);
  // The host took so long to plan a step and to take its results: the device waits that long where
  // it is not a launch ahead.
  void note_host(double seconds);
  // The sequence, whose prompt has so many tokens, has ended.
  void note_end(const OpenSequence& seq, std::uint64_t prompt_tokens);

  // Forgets what a tenant generated in its private scopes and what the draft model has computed
  // there, or all.
  void forget(std::optional<TenantId> tenant);
  // The same of a tenant that is removed: what its running requests add is not found again.
  void retire(TenantId tenant);

 private:
  // A chunk whose sequence has a draft; one of the draft model is the last of so many jobs.
  struct Offered {
    sched::ScheduledChunk* chunk;
    std::size_t jobs;
  };
  // Measures the time until its end as one of drafts.
  class Timed {
   public:
    explicit Timed(const Drafting& drafting)
        : drafting_(drafting), began_ns_(drafting.clock_.now_ns()) {}
    ~Timed() {
      drafting_.meters_.note_drafting(seconds_between(began_ns_, drafting_.clock_.now_ns()));
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    const Drafting& drafting_;
    std::int64_t began_ns_;
  };

  void begin_step(std::uint32_t rows, std::uint32_t sequences, std::uint32_t drafts_max);
  std::uint32_t drafts_beside(std::uint32_t rows) const;
  bool is_near(const OpenSequence& seq) const;
  std::uint32_t find_draft(OpenSequence& seq);
  void note_expected(OpenSequence& seq);
  speculate::DraftQuery query_of(OpenSequence& seq) const;
  std::uint32_t propose(const sched::ScheduledChunk& chunk, std::uint64_t tokens_max,
                        bool may_take_blocks);
  void take_draft(const Offered& offered, std::uint32_t tokens, bool may_take_blocks);
  std::uint32_t model_tokens(OpenSequence& seq, std::uint32_t drafts_max);
  void run_model(bool may_take_blocks);
  void cut_draft(OpenSequence& seq) const;

  DraftingOptions options_;
  const kv::Cache& cache_;
  sched::Scheduler& scheduler_;
  const Runner& runner_;
  EngineMeters& meters_;
  const Clock& clock_;
  speculate::Speculator speculator_;
  double host_seconds_ = 0;  // of a step, a moving average
  double model_seconds_ = 0;
  bool has_caught_up_ = false;    // during the launch that is collected next
  std::vector<Offered> offered_;  // of the step that is being made, by the speculator's order
  // The work of the draft model in the step that is being made, and the chunks that get its drafts.
  std::vector<DraftModel::Job> jobs_;
  std::vector<sched::ScheduledChunk*> job_chunks_;  // [job]; nullptr: the job only catches up
};

}  // namespace pagoda::engine
