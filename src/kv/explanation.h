// Why a prompt was not found in the cache, or not all of it, as plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/token_id.h"

namespace pagoda::kv {

// The reason why a match ended. Where several apply it is the one without which the match would
// have been longest.
enum class MissReason : std::uint8_t {
  kNone,            // nothing is missing: all but the last token was there
  kTooShort,        // a prompt of one token, which is computed always
  kSharingOff,      // the cache shares nothing
  kPromptLogprobs,  // the whole prompt is computed: its log-probabilities were asked for
  kInWork,          // a running request is computing it
  kEvicted,         // it was there and made room
  kCleared,         // it was there until the cache was reset
  kOtherAdapter,    // it is there under another adapter
  kOtherFormat,     // it is there under another model, numerics or KV format
  kOtherPolicy,     // it is there under another KV policy
  kOtherSalt,       // it is there under another salt of the same owner
  kDiffers,         // after some shared tokens the cache goes on with others
  kNeverSeen,       // nothing like it was there, or too long ago to be remembered
  kObserved,        // the KV policy computes the last tokens of a prompt itself
  kWholeBlocks,     // a tier had every whole block of it, and tiers keep no part of a block
};

inline constexpr std::size_t kMissReasons = 15;

constexpr std::string_view reason_name(MissReason reason) {
  constexpr std::array<std::string_view, kMissReasons> kNames = {
      "none",       "too_short", "sharing_off",   "prompt_logprobs", "in_work",
      "evicted",    "cleared",   "other_adapter", "other_format",    "other_policy",
      "other_salt", "differs",   "never_seen",    "observed",        "whole_blocks"};
  return kNames[static_cast<std::size_t>(reason)];
}

enum class EvictionCause : std::uint8_t {
  kRoom,        // a request needed its block
  kQuota,       // ... and its account had more blocks than its quota
  kRetained,    // ... and the time for which it was retained had ended
  kReset,       // the cache was cleared
  kSuperseded,  // ... and its session had gone on without it, or had ended
};

inline constexpr std::size_t kEvictionCauses = 5;

constexpr std::string_view cause_name(EvictionCause cause) {
  constexpr std::array<std::string_view, kEvictionCauses> kNames = {
      "room", "quota", "retention_ended", "reset", "session"};
  return kNames[static_cast<std::size_t>(cause)];
}

// Blocks that left, [cause].
using EvictionCounts = std::array<std::uint64_t, kEvictionCauses>;

// When what is missing left. Times are the cache's.
struct Eviction {
  EvictionCause cause = EvictionCause::kRoom;
  std::int64_t left_ns = 0;
  std::int64_t idle_ns = 0;  // unused before it left, to 10 ms
  bool for_others = false;   // the room was for a request of another tenant

  bool operator==(const Eviction&) const = default;
};

struct Explanation {
  static constexpr std::size_t kStoredTokensMax = 16;

  std::uint64_t prompt_tokens = 0;
  std::uint64_t tokens_matched = 0;  // in memory
  std::uint64_t tokens_in_tier = 0;  // after those, in another tier: for who knows it to say
  MissReason reason = MissReason::kNone;
  // Tokens that would have been matched but for the reason; at least tokens_matched.
  std::uint64_t tokens_reachable = 0;
  // Set for kEvicted and kCleared: how the first missing block left. Nothing: it is not remembered.
  std::optional<Eviction> eviction = {};
  // Set for kDiffers: the tokens that the cache has instead of the prompt's from stops_at() on.
  std::vector<TokenId> stored = {};
  // Evictions until this time may be forgotten; their blocks then count as never seen. Nothing:
  // every eviction is remembered.
  std::optional<std::int64_t> forgotten_until_ns = {};

  // The first token of the prompt that was not there.
  std::uint64_t stops_at() const { return tokens_matched + tokens_in_tier; }
};

}  // namespace pagoda::kv
