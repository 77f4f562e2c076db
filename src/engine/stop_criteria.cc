#include "engine/stop_criteria.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace pagoda::engine {
namespace {

// Sorts the tokens and drops repetitions.
std::vector<TokenId> ascending(std::vector<TokenId> sorted) {
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

bool holds(const SharedList<TokenId>& sorted, TokenId token) {
  return std::binary_search(sorted.begin(), sorted.end(), token);
}

}  // namespace

Status check_stop(const StopParams& options, std::uint32_t vocabulary) {
  if (options.max_tokens == 0u) {
    return Error{ErrorCode::kInvalidArgument, "max_tokens is 0, expected at least 1"};
  }
  if (options.max_tokens && options.min_tokens > *options.max_tokens) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("min_tokens is {}, expected at most max_tokens, which is {}",
                             options.min_tokens, *options.max_tokens)};
  }
  if (options.stop_token_ids.size() > kStopTokensMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("stop_token_ids: has {} tokens, expected at most {}",
                             options.stop_token_ids.size(), kStopTokensMax)};
  }
  for (const TokenId token : options.stop_token_ids) {
    if (token.value() < vocabulary) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("stop_token_ids names token {}, expected below the vocabulary of {}",
                             token.value(), vocabulary)};
  }
  return ok_status();
}

StopCriteria::StopCriteria(const StopParams& options, std::span<const TokenId> end_tokens)
    : min_tokens_(options.min_tokens),
      max_tokens_(options.max_tokens),
      stop_(ascending({options.stop_token_ids.begin(), options.stop_token_ids.end()})) {
  std::vector<TokenId> both(end_tokens.begin(), end_tokens.end());
  if (!options.ignore_eos) end_ = ascending(both);
  both.insert(both.end(), stop_.begin(), stop_.end());
  forbidden_ = ascending(std::move(both));
}

std::optional<StopReason> StopCriteria::after(TokenId last, std::uint64_t generated) const {
  if (generated < min_tokens_) return std::nullopt;
  if (holds(end_, last)) return StopReason::kEosToken;
  if (holds(stop_, last)) return StopReason::kStopToken;
  if (max_tokens_ && generated >= *max_tokens_) return StopReason::kLength;
  return std::nullopt;
}

std::span<const TokenId> StopCriteria::forbidden_after(std::uint64_t generated) const {
  if (generated >= min_tokens_) return {};
  return {forbidden_.begin(), forbidden_.size()};
}

}  // namespace pagoda::engine
