// SimDraftModel is a draft model over the toy model: with a cache of its own, which may be too
// small, and wrong tokens now and then.
#pragma once

#include <string>

#include "engine/draft_model.h"
#include "sim/page_oracle.h"
#include "sim/sim_setup.h"
#include "sim/toy_runner.h"

namespace pagoda::sim {

// Blocks that nobody owns may be overwritten at any moment.
inline void spoil_free_blocks(const kv::Cache& cache, ToyRunner& runner) {
  for (std::uint32_t i = 0; i < cache.pool().blocks(); ++i) {
    const kv::BlockId block(i);
    if (cache.pool().state(block) == kv::BlockState::kFree) runner.spoil(block);
  }
}

class SimDraftModel {
 public:
  explicit SimDraftModel(const SimSetup& setup)
      : cache_({.blocks = setup.draft_model_blocks,
                .block_tokens = setup.cache.block_tokens,
                .groups = setup.cache.groups}),
        runner_(setup.model, setup.draft_model_blocks, setup.cache.block_tokens, 0),
        model_({.space = "toy draft",
                .vocabulary = setup.draft_vocabulary,
                .context_tokens = setup.core.limits.context_tokens,
                .rows_max = setup.core.scheduler.batched_tokens_max},
               cache_, runner_) {}

  engine::DraftModel& model() { return model_; }
  void spoil_free() { spoil_free_blocks(cache_, runner_); }
  // Names a page with rows of others; empty when there is none.
  std::string wrong_page() { return sim::wrong_page(cache_, runner_); }

 private:
  kv::Cache cache_;
  ToyDraftRunner runner_;
  engine::DraftModel model_;
};

}  // namespace pagoda::sim
