// What a request may ask for depends on who sends it.
#pragma once

#include "server/access/caller.h"
#include "server/api/completion_request.h"

namespace pagoda::server {

// The request becomes its caller's: tenant, the salt its blocks are kept under, and no more urgent
// than its tenant may be. Throws ApiError (403) where it would publish and may not.
void bind_to_caller(CompletionRequest& request, const Caller& caller);

}  // namespace pagoda::server
