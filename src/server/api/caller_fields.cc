#include "server/api/caller_fields.h"

#include <fmt/format.h>

#include "server/api_error.h"

namespace pagoda::server {

void bind_to_caller(CompletionRequest& request, const Caller& caller) {
  if (request.public_upto && !caller.may_publish) {
    throw ApiError(403, "cache_public_upto: this API key may not publish", "cache_public_upto",
                   "permission_denied");
  }
  if (request.engine.priority < caller.priority_min) {
    throw ApiError(400,
                   fmt::format("priority: is {}, tenant {} may ask for {} or more",
                               request.engine.priority, caller.tenant_name, caller.priority_min),
                   "priority");
  }
  request.engine.tenant = caller.tenant;
  request.engine.cache_salt = caller.salt(request.engine.cache_salt);
}

}  // namespace pagoda::server
