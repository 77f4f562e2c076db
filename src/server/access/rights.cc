#include "server/access/rights.h"

#include "server/api_error.h"

namespace pagoda::server {

void require(Who who, const Caller& caller, bool metrics_need_admin) {
  if (who == Who::kMetrics) who = metrics_need_admin ? Who::kAdmin : Who::kAnyone;
  if (who == Who::kAnyone) return;
  if (!caller.is_known) {
    throw ApiError(401, "a good API key is needed: Authorization: Bearer KEY", {},
                   "invalid_api_key");
  }
  if (who == Who::kAdmin && !caller.is_admin) {
    throw ApiError(403, "an admin's API key is needed here", {}, "permission_denied");
  }
}

}  // namespace pagoda::server
