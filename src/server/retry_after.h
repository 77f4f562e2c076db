// Says when a client that was refused by 429 or 503 should come back: the Retry-After header, in
// whole seconds from kRetrySecondsMin to kRetrySecondsMax.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/access/caller.h"
#include "server/http_reply.h"
#include "server/server_state.h"

namespace pagoda::server {

inline constexpr std::uint64_t kRetrySecondsMin = 1;
inline constexpr std::uint64_t kRetrySecondsMax = 60;
// While the model loads: how long that takes is not known before.
inline constexpr std::uint64_t kRetryLoadingSeconds = 5;
// A server that stops lets requests end for about so long; whoever starts it again needs more.
inline constexpr std::uint64_t kRetryStoppingSeconds = 30;

// Until those that wait now and one more request are worked off: requests times what a request has
// cost so far, tokens of prompts that were computed and of outputs, by the rates at which the
// engine computes them now. kRetrySecondsMin while nothing was measured.
std::uint64_t queue_seconds(const engine::Snapshot& now);

// Until a limit of tokens per minute, which grants its tokens evenly, has granted so many.
std::uint64_t refill_seconds(std::uint64_t tokens, std::uint64_t tokens_per_minute);

// Returns the seconds for a refusal of which only its error's code is known.
std::uint64_t retry_after_s(const ServerState& state, std::string_view code);

// Whether the reply refuses by 429 or 503 and does not say yet when to come back.
bool lacks_retry_after(const HttpReply& reply);

// Adds the header to the refusal of a completion with so many tokens in its prompts, where the
// limit of tokens per minute of the caller's tenant can have refused it. Other replies stay as they
// are: retry_after_s() says the seconds.
void add_retry_after(const ServerState& state, const Caller& caller, std::uint64_t prompt_tokens,
                     HttpReply& reply);

}  // namespace pagoda::server
