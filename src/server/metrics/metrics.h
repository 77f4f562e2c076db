// GET /metrics: everything operators' tools read, from snapshots and counters that are there
// anyway. The engine's thread takes no part in it.
#pragma once

#include <string_view>
#include <vector>

#include "engine/distributions.h"
#include "engine/snapshot.h"
#include "engine/tenant.h"
#include "server/http_reply.h"
#include "server/metrics/exposition.h"
#include "server/server_state.h"

namespace pagoda::server {

// One look at the server.
struct Readings {
  const ServerState& state;
  const ServedModel& model;
  engine::Snapshot now;
  const engine::Distributions& distributions;
  std::vector<engine::TenantStats> tenants;
};

// A model must be open.
HttpReply metrics_reply(const ServerState& state, std::string_view accept);

// Each writes families of its own prefix.
void write_vllm_metrics(Exposition& page, const Readings& readings);
void write_llama_metrics(Exposition& page, const Readings& readings);
void write_pagoda_metrics(Exposition& page, const Readings& readings);
void write_process_metrics(Exposition& page);

void write_tier_metrics(Exposition& page, const Readings& readings);

// A fact of the server as a label: "lru". Empty when it is not known.
std::string fact_text(const ServedModel& model, std::string_view name);

}  // namespace pagoda::server
