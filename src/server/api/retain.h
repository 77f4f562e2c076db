// "retain": {"seconds": 600, "priority": 50, "upto": "system"}: reads how much of a prompt is to
// stay in the cache, and reports what was granted.
#pragma once

#include <optional>

#include "engine/reply.h"
#include "server/api/completion_request.h"
#include "server/fields.h"
#include "server/json.h"

namespace pagoda::server {

// Throws ApiError.
std::optional<RetainField> read_retain(const Fields& fields, bool is_chat);

// Returns the parameters for one prompt: a number beyond its length means all of it. Returns
// nothing where the prompt has no system message.
std::optional<engine::RetainParams> retain_params(const RetainField& field, const Prompt& prompt);

// {"granted": true, "tokens": 64, "blocks": 4, "seconds": 600.0, "priority": 50}, or
// {"granted": false, "reason": "..."}. `budget_option` names the option without which nothing is
// granted; empty: there is a budget.
Json retain_json(const RetainField& field, const std::optional<engine::RetainOutcome>& outcome,
                 const std::string& budget_option);

}  // namespace pagoda::server
