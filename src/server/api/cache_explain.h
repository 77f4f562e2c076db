// "cache_explain": true adds how much of a prompt the cache had, where the match ended and why, and
// a change that would make the match longer.
#pragma once

#include <cstdint>
#include <string>

#include "chat/answer_form.h"
#include "kv/explanation.h"
#include "kv/kv_policy.h"
#include "server/api/completion_request.h"
#include "server/json.h"
#include "server/option_name.h"
#include "text/tokenizer.h"

namespace pagoda::server {

struct ExplainTerms {
  std::int64_t now_ns = 0;  // by the engine's clock
  // The request has a salt and the server has tiers, where public blocks are not looked for.
  bool salted_beside_tiers = false;
  const OptionName& option_name;
  kv::KvPolicy policy = {};  // that the request runs under
  std::uint32_t block_tokens = 16;
  const chat::AnswerForm* form = nullptr;  // of the model's answers, where it is known
};

// {"prompt_tokens": 90, "matched_tokens": 9, "matched_by_tier": {"memory": 9, "tier": 0},
//  "reason": "differs", "reachable_tokens": 9,
//  "stopped_at": {"token": 9, "asked": {"id": 1, "text": " 15"}, "source": "system", "message": 0,
//                 "character": 41},
//  "stored": {"id": 2, "text": " 14"}, "evicted": null,
//  "advice": "the system prompt changes at character 41: a date …"}
Json explain_json(const kv::Explanation& why, const Prompt& prompt,
                  const text::Tokenizer& tokenizer, const ExplainTerms& terms);

}  // namespace pagoda::server
