// When an answer ends by its tokens alone: after an end token of the model, a stop token of the
// request, or enough tokens. Until min_tokens are there, tokens that end an answer may not come.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace pagoda::engine {

struct EndOptions {
  std::uint32_t min_tokens = 0;
  std::optional<std::uint32_t> max_tokens = {};  // at least 1
  std::vector<TokenId> stop_token_ids = {};
  bool ignore_eos = false;  // the model's end tokens end nothing
};

// Names the option that is out of its range or contradicts another, its value and the range.
Status check_end(const EndOptions& options, std::uint32_t vocabulary);

enum class EndReason : std::uint8_t { kEndToken, kStopToken, kLength };

class EndRule {
 public:
  EndRule() = default;  // never ends
  // `end_tokens`: those of the model. As in vLLM they may not come before min_tokens even when
  // they are ignored.
  EndRule(const EndOptions& options, std::span<const TokenId> end_tokens);

  // Why the answer ends with `last`, its token number `generated` (counted from 1); nothing when
  // it goes on.
  std::optional<EndReason> after(TokenId last, std::uint64_t generated) const;

  // The tokens that may not follow `generated` tokens, ascending.
  std::span<const TokenId> forbidden_after(std::uint64_t generated) const;

  std::optional<std::uint32_t> max_tokens() const { return max_tokens_; }

 private:
  std::uint32_t min_tokens_ = 0;
  std::optional<std::uint32_t> max_tokens_;
  std::vector<TokenId> end_;        // of the model, ascending; none when ignored
  std::vector<TokenId> stop_;       // of the request, ascending
  std::vector<TokenId> forbidden_;  // until min_tokens_, ascending, each once
};

}  // namespace pagoda::engine
