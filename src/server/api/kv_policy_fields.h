// "kv_policy" of a request, and what replies say of it (kv/kv_policy.h):
//
//   {"type": "full"}
//   {"type": "window", "window": 1024}
//   {"type": "streaming", "sinks": 4, "window": 1024}
//   {"type": "h2o", "budget": 1024, "recent": 128}
//   {"type": "snapkv", "budget": 1024, "window": 64, "kernel": 5}
//   "streaming:4+1024"                                    the same, as the server's flag writes it
#pragma once

#include <cstdint>
#include <optional>

#include "kv/kv_policy.h"
#include "server/api/completion_request.h"
#include "server/fields.h"
#include "server/json.h"

namespace pagoda::server {

// Nothing where the body has none. Throws ApiError.
std::optional<kv::KvPolicy> read_kv_policy(const Fields& fields);

// Asks what is known of the quality of the policy that the request names, unless the server itself
// has it. Throws ApiError where the server refuses it.
void judge_kv_policy(const Fields& fields, const ServedModel& model, CompletionRequest& request);

// {"name": "streaming:4+1024", "tokens_kept": 1028, "tokens_dropped": 4092}
Json kv_policy_json(const kv::KvPolicy& policy, std::uint64_t tokens_kept,
                    std::uint64_t tokens_dropped);

}  // namespace pagoda::server
