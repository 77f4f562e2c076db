// The access level that an endpoint requires of its caller. The table of endpoints (router.cc)
// names one for each.
#pragma once

#include <cstdint>

#include "server/access/caller.h"

namespace pagoda::server {

enum class Access : std::uint8_t {
  kAnyone,   // shows nothing that an outsider may not know
  kKey,      // shows and changes the caller's own data alone
  kAdmin,    // shows or changes data of others
  kMetrics,  // kAnyone, or kAdmin where metrics_need_admin
};

// Throws ApiError: 401 for an unknown caller, 403 for a caller without this right.
void require(Access level, const Caller& caller, bool metrics_need_admin);

// Whose prompts a caller may read as text, where it is shown what the cache holds of everybody's.
enum class ReadableText : std::uint8_t {
  kNone,
  kPublic,  // those without a tenant and without a salt
  kAll,
};

// Text is for admins alone and, where there are no keys, for callers on this machine; that of
// private prompts only where the operator says so.
ReadableText readable_text(const Caller& caller, bool show_prompts_to_admins);

inline bool may_read(ReadableText text, bool is_public) {
  return text == ReadableText::kAll || (is_public && text == ReadableText::kPublic);
}

}  // namespace pagoda::server
