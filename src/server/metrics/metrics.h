// GET /metrics: everything that operators' tools read, from snapshots and counters that exist
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

// The values of one scrape.
struct Readings {
  const ServerState& state;
  const ServedModel& model;
  engine::Snapshot now;
  const engine::Distributions& distributions;
  std::vector<engine::TenantStats> tenants;
};

// Needs an open model.
HttpReply metrics_reply(const ServerState& state, std::string_view accept);

// Each function writes the families of its own prefix.
void write_vllm_metrics(Exposition& page, const Readings& readings);
void write_llama_metrics(Exposition& page, const Readings& readings);
void write_pagoda_metrics(Exposition& page, const Readings& readings);
void write_process_metrics(Exposition& page);

// Writes samples with the label `position`, up to the last one at which a draft token was accepted.
void write_accepted_positions(Exposition& page, const engine::Snapshot& now);

void write_tier_metrics(Exposition& page, const Readings& readings);

// Returns a fact of the server as a label, such as "lru"; empty when it is not known.
std::string fact_text(const ServedModel& model, std::string_view name);

}  // namespace pagoda::server
