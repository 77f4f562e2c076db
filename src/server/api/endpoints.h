// The endpoints that compute nothing. All throw ApiError.
#pragma once

#include <memory>

#include "server/access/key_ring.h"
#include "server/deferred_reply.h"
#include "server/http_reply.h"
#include "server/json.h"
#include "server/request_log.h"
#include "server/served_model.h"

namespace pagoda::server {

struct ReadingTerms;  // chat_prompt.h

Json list_models(const ServedModel& model);
// One of them; 404 when none has this id.
Json describe_model(const ServedModel& model, const std::string& id);
// `version` is the program's.
Json describe_server(const ServedModel& model, const std::string& version);
Json tokenize(Json body, const ServedModel& model, const ReadingTerms& terms);
Json detokenize(Json body, const ServedModel& model, const ReadingTerms& terms);
Json render_chat(Json body, const ServedModel& model, const ReadingTerms& terms);
// What requests had retained: their budget, and every grant that runs, without whose it is.
Json list_retained(const ServedModel& model);
// What share of the blocks asked for other sizes and policies would have found.
Json describe_curve(const ServedModel& model);
// Requests that are sent after the reply find an empty cache, but for what running ones hold: an
// admin's reset clears everything, another's what is private to its tenant.
Json reset_prefix_cache(const ServedModel& model, const Caller& caller);
// Everything private of a tenant leaves memory and every tier; says what went, what requests that
// run still hold, and which tier could not be reached: why is written to `log` alone, since it
// names files and hosts. 404 when there is no such tenant.
std::unique_ptr<DeferredReply> remove_tenant(const ServedModel& model, const std::string& name,
                                             RequestLog& log);
// A block of the pool has the size of all its pages together.
HttpReply tell_removal(const std::string& name, std::uint64_t block_bytes,
                       engine::TenantRemoval removal, RequestLog& log);
// Who has keys, and the limits that were given to them. `keys` may be nullptr.
Json list_tenants(const KeyRing* keys, const std::vector<engine::TenantStats>& now);

}  // namespace pagoda::server
