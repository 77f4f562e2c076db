// A table row of planner tests: a scheduler view in words, and the plan that must come of it.
//
// Blocks have 4 tokens and, unless a row says otherwise, one KV cache group. Tasks arrive in the
// order of their list; tenants 1, 2, … are those of the list, and 0 has no limits. The accounts of
// tenants and length classes are those that a scheduler keeps of these tasks.
//
// A plan in words, in the order of deciding:
//
//   -a        a is preempted
//   b+8       b, which runs, computes 8 tokens; b+8* and samples its next token
//   >c+8      c is admitted with a first chunk of 8 tokens
//   c~        a load of c's pages gets c's room
//   d?blocks  d was looked at and waits for blocks; d?blocks/2 and 2 later ones passed it
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "sched/options.h"
#include "sched/prompt_time.h"
#include "sched/tenant.h"
#include "sched/wait_reason.h"

namespace pagoda::sched {

struct PlannedTask {
  char name = 'a';
  std::uint64_t tokens = 0;    // known: the prompt, and the output so far
  std::uint64_t computed = 0;  // of them, where it runs
  bool runs = false;
  std::uint32_t tenant = 0;
  std::int32_t priority = 0;
  std::uint64_t tokens_max = 10'000;
  std::uint32_t sequences = 1;
  char text = 0;  // tasks of one text share their tokens; 0: its own
  std::string salt = {};
  bool paused = false;
  std::uint64_t tokens_at_admission = 0;
  bool launched = false;  // its last launch is not collected
  bool compute_whole_prompt = false;
  WaitReason waits_for = WaitReason::kNew;
  bool awaits_load = false;
  bool load_wants_room = false;
  std::uint64_t tokens_seen_in_pool = 0;
  std::uint32_t times_passed = 0;
  std::uint32_t prefix_waits = 0;
  std::uint64_t blocks_wanted = 0;
  std::uint64_t look_again_step = 0;
  std::string drops = {};  // a KV policy that selects pages
  std::uint64_t grammar_work = 0;
  std::uint64_t launches_ago = 0;     // since its last launch
  std::uint32_t samples = 0;          // that running launches sample
  std::uint64_t prompt_of_drops = 0;  // tokens behind them count as output for that policy
};

struct PlannedTenant {
  double clock = 0;
  std::uint64_t asked_step = 0;  // 0: never
  TenantLimits limits = {};
};

struct PlannerCase {
  std::string name;
  std::vector<PlannedTask> tasks = {};
  std::string plan = {};  // words, separated by blanks
  std::vector<PlannedTenant> tenants = {};
  std::uint32_t blocks = 1000;
  std::uint32_t sequences_max = 8;
  std::uint32_t batched_tokens_max = 32;
  std::uint32_t long_prefill_tokens = 0;
  std::uint32_t shared_step_tokens = 16;
  std::uint32_t passes_max = 64;
  std::uint32_t candidates_max = 64;
  std::string context_classes = "max:1";
  std::vector<PlannedTask> cached = {};  // idle in the cache: computed, and nobody's any more
  bool blocks_coming = false;
  std::uint64_t step = 100;
  ItlLimit itl = {};
  std::vector<kv::memory::AttentionSpec> groups = {{}};
};

inline std::ostream& operator<<(std::ostream& out, const PlannerCase& row) {
  return out << row.name;
}

// A running task that has computed all but its last token, or less.
inline PlannedTask running(char name, std::uint64_t computed, std::uint64_t tokens,
                           PlannedTask more = {}) {
  more.name = name;
  more.tokens = tokens;
  more.computed = computed;
  more.runs = true;
  return more;
}

inline PlannedTask waiting(char name, std::uint64_t tokens, PlannedTask more = {}) {
  more.name = name;
  more.tokens = tokens;
  return more;
}

// The plan of the row's view, in words. Planning changes nothing: a second plan must be the same.
std::string plan_of(const PlannerCase& row);
// How many tokens the plan leaves for drafts.
std::uint64_t tokens_left_of(const PlannerCase& row);

inline std::string row_name(const testing::TestParamInfo<PlannerCase>& row) {
  return row.param.name;
}

}  // namespace pagoda::sched
