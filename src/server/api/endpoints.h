// Endpoints that compute no tokens. All throw ApiError.
#pragma once

#include <memory>

#include "server/access/key_ring.h"
#include "server/api/completion_request.h"
#include "server/cache_looks.h"
#include "server/deferred_reply.h"
#include "server/http_reply.h"
#include "server/json.h"
#include "server/request_log.h"
#include "server/served_model.h"

namespace pagoda::server {

struct ReadingTerms;  // chat_prompt.h

Json list_models(const ServedModel& model);
// The same as Anthropic lists models, for its clients.
Json list_models_for_anthropic(const ServedModel& model);
// Describes one of the model's names; 404 for any other id.
Json describe_model(const ServedModel& model, const std::string& id);
Json describe_model_for_anthropic(const ServedModel& model, const std::string& id);
// `version` is the program's.
Json describe_server(const ServedModel& model, const std::string& version);
// SGLang's /model_info and /v1/loads.
Json describe_model_info(const ServedModel& model);
Json describe_loads(const ServedModel& model, const std::string& version);
Json tokenize(Json body, const ServedModel& model, const ReadingTerms& terms);
Json detokenize(Json body, const ServedModel& model, const ReadingTerms& terms);
Json render_chat(Json body, const ServedModel& model, const ReadingTerms& terms);
// The tokens of each prompt of a completion.
Json render_text(Json body, const ServedModel& model, const ReadingTerms& terms);
// Lists the retention budget, who retains how many blocks, and every active grant, without its
// owner.
std::unique_ptr<DeferredReply> list_retained(const ServedModel& model, CacheLooks& looks);
// Reports the share of requested blocks that other cache sizes and policies would have hit.
Json describe_curve(const ServedModel& model);
// Clears the pool for requests that are sent after the reply, except blocks that running requests
// hold: all of it for an admin, the private blocks of its tenant for another caller. Tiers keep
// what they have.
Json reset_prefix_cache(const ServedModel& model, const Caller& caller);
// Removes a tenant's private blocks from memory and from every tier. The reply says what was
// removed, what running requests still hold, and which tier failed; the reason of a failure goes to
// `log` alone, because it names files and hosts. 404 when there is no such tenant.
std::unique_ptr<DeferredReply> remove_tenant(const ServedModel& model, const std::string& name,
                                             RequestLog& log);
// Ends a session of the caller's: its blocks make room first, and tiers get copies of them. 404
// when there is no such session.
std::unique_ptr<DeferredReply> end_session(const Json& body, const ServedModel& model,
                                           const HttpRequest& request);
// Returns a request for the last prompt of a session of the caller's. 404 when none is remembered.
CompletionRequest read_session_prompt(const Json& body, const ServedModel& model,
                                      const HttpRequest& request);
// A block of the pool has the size of all its pages together.
HttpReply tell_removal(const std::string& name, std::uint64_t block_bytes,
                       engine::TenantRemoval removal, RequestLog& log);
// Lists the tenants that have keys, with their limits. `keys` may be nullptr.
Json list_tenants(const KeyRing* keys, const std::vector<engine::TenantStats>& now);

}  // namespace pagoda::server
