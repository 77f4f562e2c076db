#include "server/api/caller_fields.h"

#include <algorithm>

#include "server/api_error.h"

namespace pagoda::server {

void bind_to_caller(CompletionRequest& request, const Caller& caller) {
  if (request.public_upto && !caller.may_publish) {
    throw ApiError(403, "cache_public_upto: this API key may not publish", "cache_public_upto",
                   "permission_denied");
  }
  request.engine.priority = std::max(request.engine.priority, caller.priority_min);
  request.engine.tenant = caller.tenant;
  request.engine.cache_salt = caller.salt(request.engine.cache_salt);
}

}  // namespace pagoda::server
