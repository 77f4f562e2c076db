// Counts a request's tokens, and those that came from the cache.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/reply.h"
#include "kv/kv_policy.h"
#include "server/api/cache_fields.h"
#include "server/api/completion_request.h"
#include "server/json.h"
#include "text/origin.h"

namespace pagoda::server {

class Usage {
 public:
  struct Share {
    std::uint64_t tokens = 0;
    std::uint64_t cached = 0;
  };

  // Adds a prompt once, whatever its number of choices; its first `cached` tokens were in the
  // cache.
  void add_prompt(const Prompt& prompt, std::uint64_t cached);
  // Adds the part of a prompt's cached tokens that came from tiers outside the pool.
  void add_loaded(const engine::LoadRecord& load);
  // Adds the tokens of a prompt that were computed and left in the cache, and those of them that
  // stay by a lifetime.
  void add_written(std::uint64_t tokens, std::span<const WrittenShare> kept);
  // Adds a sequence of these lengths that ran under a KV policy. `quality` says what was measured
  // of it; empty: nothing is said.
  void add_bounded(const kv::KvPolicy& policy, kv::SequenceLengths lengths,
                   std::uint32_t block_tokens, std::string_view quality = {});
  // Adds a choice of so many tokens; the first of them are its reasoning.
  void add_completion(std::uint64_t tokens, std::uint64_t reasoning = 0) {
    completion_tokens_ += tokens;
    reasoning_tokens_ += reasoning;
  }
  // Adds the draft tokens of a sequence.
  void add_drafts(const engine::DraftCounts& drafts);

  std::uint64_t prompt_tokens() const { return prompt_tokens_; }
  std::uint64_t cached_tokens() const { return cached_tokens_; }
  std::uint64_t completion_tokens() const { return completion_tokens_; }
  std::uint64_t written_tokens() const { return written_tokens_; }
  // Tokens that were left out of prompts, as far as they were counted.
  std::uint64_t dropped_tokens() const { return dropped_tokens_; }
  // Tokens that KV policies had dropped of sequences when they ended.
  std::uint64_t policy_dropped_tokens() const { return policy_dropped_tokens_; }
  const engine::DraftCounts& drafts() const { return drafts_; }
  // Cached tokens behind text that was normalised: without that they would not have been found.
  std::uint64_t normalised_tokens() const { return normalised_tokens_; }
  // Written tokens that stay for more than `above` seconds and at most `upto`.
  std::uint64_t kept_tokens(double above, double upto) const;
  std::span<const Share, text::kSourceCount> by_source() const { return by_source_; }

  // Returns what no other server counts, the same in every API: {"speculation": …, "kv_policy": …},
  // each where it had a part in the answer.
  Json own_members() const;
  // `tiers` are named nearest first; without tiers the JSON does not mention them.
  Json to_json(std::span<const std::string> tiers = {}) const;

 private:
  std::array<Share, text::kSourceCount> by_source_;
  engine::LoadRecord loaded_;  // over all prompts
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t cached_tokens_ = 0;
  std::uint64_t completion_tokens_ = 0;
  std::uint64_t reasoning_tokens_ = 0;
  std::uint64_t written_tokens_ = 0;
  std::uint64_t dropped_tokens_ = 0;
  std::uint64_t normalised_tokens_ = 0;
  kv::KvPolicy policy_ = {};
  std::string_view policy_quality_ = {};
  std::uint64_t policy_kept_tokens_ = 0;
  std::uint64_t policy_dropped_tokens_ = 0;
  std::vector<WrittenShare> kept_;
  engine::DraftCounts drafts_ = {};
};

}  // namespace pagoda::server
