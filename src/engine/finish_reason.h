// FinishReason says why a sequence ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pagoda::engine {

enum class FinishReason : std::uint8_t {
  kStop,       // an end token, or a stop token of the request
  kLength,     // as many tokens as were asked for
  kContext,    // prompt and output fill the context
  kCancelled,  // by the client, or because it went away
  kDeadline,   // the request's time is over
  kRefused,    // before it began: a limit is reached for now
  kError,    // its logits are not finite, or it was computed from pages that are not to be trusted
  kLost,     // the device is lost: nothing more will be computed
  kNoToken,  // its grammar, logit_bias and min_tokens leave no token
};

inline constexpr std::size_t kFinishReasonCount = 9;

// True: the sequence ended by itself, with what was asked for.
constexpr bool ended_well(FinishReason reason) {
  return reason == FinishReason::kStop || reason == FinishReason::kLength ||
         reason == FinishReason::kContext;
}

constexpr std::string_view finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContext:
      return "context";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kRefused:
      return "refused";
    case FinishReason::kError:
      return "error";
    case FinishReason::kLost:
      return "lost";
    case FinishReason::kNoToken:
      return "no_token";
  }
  return "unknown";
}

}  // namespace pagoda::engine
