// Requests run to their end on the caller's thread, together: for measuring what a model says
// without a server.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/token_id.h"
#include "engine/backends/backend.h"
#include "engine/request.h"

namespace pagoda::app {

struct OfflineReply {
  std::vector<TokenId> tokens;         // without the token that ended the sequence
  std::vector<float> prompt_logprobs;  // of the scored prompt tokens, in their order
};

struct OfflineHooks {
  std::function<bool()> cancelled = {};               // asked between steps
  std::function<void(std::uint64_t)> on_tokens = {};  // tokens computed so far, of all
};

// Returns a reply for each request, in their order. An error when a request is refused or fails, or
// after `cancelled`. Each request is of one sequence. Nobody else may use the backend meanwhile.
Result<std::vector<OfflineReply>> run_offline(engine::Backend& backend,
                                              std::vector<engine::Request> requests,
                                              const Clock& clock, const OfflineHooks& hooks = {});

}  // namespace pagoda::app
