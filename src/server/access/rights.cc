#include "server/access/rights.h"

#include "server/api_error.h"

namespace pagoda::server {

void require(Access level, const Caller& caller, bool metrics_need_admin) {
  if (level == Access::kMetrics) level = metrics_need_admin ? Access::kAdmin : Access::kAnyone;
  if (level == Access::kAnyone) return;
  if (!caller.is_known) {
    throw ApiError(401, "invalid or missing API key: Authorization: Bearer KEY, or X-Api-Key: KEY",
                   {}, "invalid_api_key");
  }
  if (level == Access::kAdmin && !caller.is_admin) {
    throw ApiError(403, "an admin's API key is needed here", {}, "permission_denied");
  }
}

ReadableText readable_text(const Caller& caller, bool show_prompts_to_admins) {
  if (!caller.is_known || !caller.is_admin) return ReadableText::kNone;
  const bool needs_no_key = caller.keys == nullptr;
  if (needs_no_key && !caller.is_local) return ReadableText::kNone;
  return show_prompts_to_admins ? ReadableText::kAll : ReadableText::kPublic;
}

}  // namespace pagoda::server
