// Applies the caller's rights to a request.
#pragma once

#include "server/access/caller.h"
#include "server/api/completion_request.h"

namespace pagoda::server {

// The request is one of the session, within its caller's region: a chat may go on with another of
// the session. A long key stands there as its digest.
void set_session(std::string_view key, CompletionRequest& request);
std::string session_key(std::string_view key);

// Gives the request its caller's tenant and salt, and limits its priority to the tenant's. Throws
// ApiError (403) when the request would publish and its caller may not.
void bind_to_caller(CompletionRequest& request, const Caller& caller);

}  // namespace pagoda::server
