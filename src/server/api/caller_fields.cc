#include "server/api/caller_fields.h"

#include <algorithm>

#include "server/access/digest.h"
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

std::string session_key(std::string_view key) {
  constexpr std::size_t kPlainBytesMax = 63;  // a digest has 64
  return key.size() <= kPlainBytesMax ? std::string(key) : to_hex(sha256(key));
}

void set_session(std::string_view key, CompletionRequest& request) {
  if (request.is_chat && !key.empty()) request.engine.session = session_key(key);
}

}  // namespace pagoda::server
