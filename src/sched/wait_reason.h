// Why a waiting task was not admitted when it was last looked at.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pagoda::sched {

enum class WaitReason : std::uint8_t {
  kNew,           // not looked at yet, or nothing but tokens
  kSequences,     // --max-num-seqs are running
  kBlocks,        // its tokens do not fit beside what runs
  kTenant,        // a limit of its tenant
  kContextClass,  // the share of its length class is taken
  kPrefix,        // another task is computing the same prefix
  kLoad,          // pages of its prompt are on their way from another tier
};

inline constexpr std::size_t kWaitReasonCount = 7;

constexpr std::string_view wait_reason_name(WaitReason reason) {
  constexpr std::array<std::string_view, kWaitReasonCount> kNames = {
      "new", "sequences", "blocks", "tenant", "context_class", "prefix", "load"};
  return kNames[static_cast<std::size_t>(reason)];
}

// Is there nothing known that keeps it, once there are slots and tokens?
constexpr bool may_start(WaitReason reason) {
  return reason == WaitReason::kNew || reason == WaitReason::kSequences;
}

// Would more room have helped? What waits for that ages (SchedulerOptions::passes_max).
constexpr bool did_not_fit(WaitReason reason) {
  return reason == WaitReason::kBlocks || reason == WaitReason::kSequences;
}

// Tasks by reason.
using WaitCounts = std::array<std::uint64_t, kWaitReasonCount>;

}  // namespace pagoda::sched
