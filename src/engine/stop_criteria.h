// StopCriteria end a sequence by its tokens alone: after an end token of the model, a stop token of
// the request, or enough tokens. Until min_tokens are there, tokens that would end the sequence are
// forbidden.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "base/shared_list.h"
#include "base/token_id.h"

namespace pagoda::engine {

inline constexpr std::size_t kStopTokensMax = 1024;

struct StopParams {
  std::uint32_t min_tokens = 0;
  std::optional<std::uint32_t> max_tokens = {};  // at least 1
  SharedList<TokenId> stop_token_ids = {};       // at most kStopTokensMax
  bool ignore_eos = false;                       // true: the model's end tokens end nothing
};

// The error names the option that is out of its range or contradicts another, its value and the
// range.
Status check_stop(const StopParams& options, std::uint32_t vocabulary);

enum class StopReason : std::uint8_t { kEosToken, kStopToken, kLength };

class StopCriteria {
 public:
  StopCriteria() = default;  // never ends
  // `end_tokens` are those of the model. As in vLLM they are forbidden before min_tokens even when
  // they are ignored.
  StopCriteria(const StopParams& options, std::span<const TokenId> end_tokens);

  // Returns why the sequence ends with `last`, its token number `generated` (counted from 1);
  // nothing when it goes on.
  std::optional<StopReason> after(TokenId last, std::uint64_t generated) const;

  // Returns the tokens that may not follow `generated` tokens, ascending.
  std::span<const TokenId> forbidden_after(std::uint64_t generated) const;

  std::optional<std::uint32_t> max_tokens() const { return max_tokens_; }

 private:
  std::uint32_t min_tokens_ = 0;
  std::optional<std::uint32_t> max_tokens_;
  // All lists ascend and hold a token once; the sequences of a request share them.
  SharedList<TokenId> end_;        // end tokens of the model; none when ignored
  SharedList<TokenId> stop_;       // stop tokens of the request
  SharedList<TokenId> forbidden_;  // tokens forbidden until min_tokens_
};

}  // namespace pagoda::engine
