// WaitReason says why a waiting sequence was not admitted when the planner last examined it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pagoda::sched {

enum class WaitReason : std::uint8_t {
  kNew,           // not examined yet, or only the token budget was used up
  kSequences,     // SchedulerOptions::sequences_max leaves too few slots
  kBlocks,        // too few KV blocks are free beside the running sequences
  kTenant,        // a limit of the tenant is reached, or room is kept for other tenants
  kContextClass,  // the share of the context class is used up
  kPrefix,        // another sequence is computing the same prefix
  kLoad,          // pages of the prompt are to be loaded from another tier first
};

inline constexpr std::size_t kWaitReasonCount = 7;

constexpr std::string_view wait_reason_name(WaitReason reason) {
  constexpr std::array<std::string_view, kWaitReasonCount> kNames = {
      "new", "sequences", "blocks", "tenant", "context_class", "prefix", "load"};
  return kNames[static_cast<std::size_t>(reason)];
}

// Returns true when the sequence needs only a slot and tokens.
constexpr bool may_start(WaitReason reason) {
  return reason == WaitReason::kNew || reason == WaitReason::kSequences;
}

// Returns true when more slots or blocks would have helped. Such sequences age
// (SchedulerOptions::passes_max).
constexpr bool did_not_fit(WaitReason reason) {
  return reason == WaitReason::kBlocks || reason == WaitReason::kSequences;
}

// Counts waiting sequences by reason.
using WaitCounts = std::array<std::uint64_t, kWaitReasonCount>;

}  // namespace pagoda::sched
