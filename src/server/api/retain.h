// "retain": {"seconds": 600, "priority": 50, "upto": "system"}: what of a prompt is to stay in the
// cache, and what became of the wish.
#pragma once

#include <optional>

#include "engine/reply.h"
#include "server/api/completion_request.h"
#include "server/fields.h"
#include "server/json.h"

namespace pagoda::server {

// Throws ApiError.
std::optional<RetainField> read_retain(const Fields& fields, bool is_chat);

// For one prompt: a number beyond it means all of it; nothing where it has no system message.
std::optional<engine::RetainParams> retain_wish(const RetainField& field, const Prompt& prompt);

// {"granted": true, "tokens": 64, "blocks": 4, "seconds": 600.0, "priority": 50}, or
// {"granted": false, "reason": "..."}
Json retain_json(const RetainField& field, const std::optional<engine::RetainOutcome>& outcome);

}  // namespace pagoda::server
