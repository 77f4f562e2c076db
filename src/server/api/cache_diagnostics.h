// Where a chat left an earlier one that its client names, in the words of both clouds.
#pragma once

#include <optional>
#include <string>

#include "server/fields.h"
#include "server/json.h"
#include "server/request_fingerprints.h"

namespace pagoda::server {

// "diagnostics": {"previous_message_id": id} of Anthropic's API, and
// "prompt_cache_options": {"comparison_response_id": id} of OpenAI's.
struct DiagnosticsField {
  enum class Api : std::uint8_t { kNone, kAnthropic, kOpenAi };

  Api api = Api::kNone;
  std::optional<std::string> earlier_id = {};  // nothing: the client has none yet

  bool is_asked() const { return api != Api::kNone; }
};

// Throws ApiError.
DiagnosticsField read_diagnostics(const Fields& fields);

struct Diagnosis {
  Json members;          // of a reply: {"diagnostics": …} or {"prompt_cache_diagnostics": …}
  bool is_miss = false;  // tokens of the earlier request are missed
};
// `before` is nothing where the id is not known, or no more; `now` must have all its pieces.
Diagnosis diagnose(const DiagnosticsField& field, const std::optional<RequestFingerprint>& before,
                   const std::optional<RequestFingerprint>& now);

}  // namespace pagoda::server
