// Applies the caller's rights to a request.
#pragma once

#include "server/access/caller.h"
#include "server/api/completion_request.h"

namespace pagoda::server {

// Gives the request its caller's tenant and salt, and limits its priority to the tenant's. Throws
// ApiError (403) when the request would publish and its caller may not.
void bind_to_caller(CompletionRequest& request, const Caller& caller);

}  // namespace pagoda::server
