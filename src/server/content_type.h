// Checks whether a body is said to be JSON, by its Content-Type.
//
// A page of any origin may send a body of another type without asking (a "simple" request of CORS);
// JSON it may send only after a preflight request. That is why the type matters at all.
#pragma once

#include "server/http_reply.h"

namespace pagoda::server {

// Throws ApiError (415) for a body that is not said to be JSON. On paths of Ollama's API, where
// clients often say nothing, and curl says "form", it throws for browsers alone, which name an
// origin.
void check_content_type(const HttpRequest& request);

}  // namespace pagoda::server
