// GET /cache/branch?node=N: one branch of the prefix tree, what is above it and what goes on from
// it, for people who walk the tree. Without a node it is the top.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/access/rights.h"
#include "server/cache_looks.h"
#include "server/deferred_reply.h"
#include "server/served_model.h"

namespace pagoda::server {

// `readable` says of which branches there is text; `text` is null of the others.
// A look has a bounded cost (kv/cache_snapshot.h). Throws ApiError (400) for a node that is no
// number; the reply is 404 for one that is not there.
std::unique_ptr<DeferredReply> show_branch(const ServedModel& model, CacheLooks& looks,
                                           const std::optional<std::string>& node,
                                           ReadableText readable);

}  // namespace pagoda::server
