// "cache_explain": true adds how much of a prompt the cache had, where the match ended and why, and
// a change that would make the match longer.
#pragma once

#include <cstdint>
#include <string>

#include "kv/explanation.h"
#include "server/api/completion_request.h"
#include "server/json.h"
#include "text/tokenizer.h"

namespace pagoda::server {

// {"prompt_tokens": 90, "matched_tokens": 9, "matched_by_tier": {"memory": 9, "tier": 0},
//  "reason": "differs", "reachable_tokens": 9,
//  "stopped_at": {"token": 9, "asked": {"id": 1, "text": " 15"}, "source": "system", "message": 0,
//                 "character": 41},
//  "stored": {"id": 2, "text": " 14"}, "evicted": null,
//  "advice": "the system prompt changes at character 41: a date …"}
// `now_ns` is the engine's clock.
Json explain_json(const kv::Explanation& why, const Prompt& prompt,
                  const text::Tokenizer& tokenizer, std::int64_t now_ns);

}  // namespace pagoda::server
