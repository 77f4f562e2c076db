// What a request may ask for depends on who sends it.
#pragma once

#include "server/access/caller.h"
#include "server/api/completion_request.h"

namespace pagoda::server {

// The request becomes its caller's: tenant, and the salt its blocks are kept under. Throws ApiError
// where it asks for more than the caller may: 403 for what only others may, 400 for a priority.
void bind_to_caller(CompletionRequest& request, const Caller& caller);

}  // namespace pagoda::server
