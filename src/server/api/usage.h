// What a request cost, in tokens, and what the cache spared it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "engine/reply.h"
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

  // A prompt counts once, whatever number of choices it gets; its first `cached` tokens were there.
  void add_prompt(const Prompt& prompt, std::uint64_t cached);
  // Of a prompt's cached tokens, those that came from tiers outside memory.
  void add_loaded(const engine::LoadRecord& load);
  void add_completion(std::uint64_t tokens) { completion_tokens_ += tokens; }

  std::uint64_t prompt_tokens() const { return prompt_tokens_; }
  std::uint64_t cached_tokens() const { return cached_tokens_; }
  std::uint64_t completion_tokens() const { return completion_tokens_; }
  std::span<const Share, text::kSourceCount> by_source() const { return by_source_; }

  // `tiers` are named nearest first; with none nothing is said of them.
  Json to_json(std::span<const std::string> tiers = {}) const;

 private:
  std::array<Share, text::kSourceCount> by_source_;
  engine::LoadRecord loaded_;  // of all prompts
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t cached_tokens_ = 0;
  std::uint64_t completion_tokens_ = 0;
};

}  // namespace pagoda::server
