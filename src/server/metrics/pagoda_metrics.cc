// Metrics of Pagoda's own: what the cache did, and why requests wait.
#include "server/metrics/metrics.h"
#include "server/router.h"

namespace pagoda::server {
namespace {

using Kind = Exposition::Kind;

// Writes hits and misses.
void write_lookups(Exposition& page, const Readings& readings) {
  const engine::LookupCounts& lookups = readings.now.lookups;
  page.begin(Kind::kCounter, "pagoda:prefix_lookups",
             "Requests by prefix cache hit: all but a token, part, nothing.");
  page.sample(lookups.whole, {{"found", "whole"}});
  page.sample(lookups.part, {{"found", "part"}});
  page.sample(lookups.none, {{"found", "none"}});
  const kv::MissCounters& misses = readings.now.misses;
  page.begin(Kind::kCounter, "pagoda:prefix_misses",
             "Requests by what ended the match of their prompt; none: nothing was missing.");
  for (std::size_t i = 0; i < kv::kMissReasons; ++i) {
    const auto reason = static_cast<kv::MissReason>(i);
    page.sample(misses[reason].requests, {{"reason", kv::reason_name(reason)}});
  }
  page.begin(Kind::kCounter, "pagoda:prefix_missed_tokens",
             "Prompt tokens that were not in memory, by what ended the match.");
  for (std::size_t i = 0; i < kv::kMissReasons; ++i) {
    const auto reason = static_cast<kv::MissReason>(i);
    page.sample(misses[reason].tokens, {{"reason", kv::reason_name(reason)}});
  }
  page.counter("pagoda:prefix_misses_evicted_for_others",
               "Misses of what made room for another tenant's request.",
               misses.requests_evicted_for_others);
  page.begin(Kind::kCounter, "pagoda:prompt_tokens_by_source",
             "Prompt tokens of ended requests by who wrote them and whether the cache had them.");
  for (std::size_t i = 0; i < text::kSourceCount; ++i) {
    const auto source = static_cast<text::Source>(i);
    const Usage::Share share = readings.state.meters().source(source);
    page.sample(share.cached, {{"source", text::source_name(source)}, {"cached", "true"}});
    page.sample(share.tokens - share.cached,
                {{"source", text::source_name(source)}, {"cached", "false"}});
  }
}

void write_normalised(Exposition& page, const Readings& readings) {
  page.counter("pagoda:prompt_tokens_saved_by_normalising",
               "Cached prompt tokens behind text that was normalised.",
               readings.state.meters().normalised_tokens());
  page.gauge("pagoda:request_fingerprints", "Answered chats that diagnostics can compare with.",
             readings.state.fingerprints().size());
}

void write_transfers(Exposition& page, const Readings& readings) {
  page.begin(Kind::kCounter, "pagoda:kv_transfers",
             "Requests whose prompt is computed by one server and answered by another, by what "
             "became of the half that was served here.");
  for (std::size_t i = 0; i < kTransferOutcomes; ++i) {
    const auto outcome = static_cast<TransferOutcome>(i);
    page.sample(readings.state.meters().transfers(outcome), {{"outcome", name_of(outcome)}});
  }
}

void write_peers(Exposition& page, const Readings& readings) {
  const auto& counts = readings.state.model().peers_served;
  if (!counts) return;
  const PeerCounts now = counts();
  page.gauge("pagoda:kv_peer_connections", "Connections of servers that fetch pages from here.",
             now.connections);
  page.counter("pagoda:kv_peer_refused",
               "Connections that were refused: not proven, nonsense, or too many.", now.refused);
  page.gauge("pagoda:kv_peer_pages_leased", "Pages of the cache that are leased to other servers.",
             now.pages_leased);
  page.counter("pagoda:kv_peer_leases_expired", "Leases that ended before their page was fetched.",
               now.leases_expired);
  page.counter("pagoda:kv_peer_pages_sent", "Pages that other servers fetched from here.",
               now.pages_sent);
  page.counter("pagoda:kv_peer_bytes_sent", "Bytes of pages that other servers fetched from here.",
               now.bytes_sent);
}

void write_blocks(Exposition& page, const Readings& readings) {
  const engine::Snapshot& now = readings.now;
  page.begin(Kind::kGauge, "pagoda:kv_blocks",
             "KV blocks by state: free, held by running requests, cached and reusable.");
  page.sample(now.blocks_free, {{"state", "free"}});
  page.sample(now.blocks_active(), {{"state", "active"}});
  page.sample(now.blocks_idle, {{"state", "reusable"}});
  page.gauge("pagoda:kv_blocks_retained", "KV blocks that requests had retained.",
             now.blocks_retained);
  page.gauge("pagoda:kv_sessions", "Sessions of clients that are open.", now.sessions);
  const std::string policy = fact_text(readings.model, "kv_eviction");
  page.begin(Kind::kCounter, "pagoda:kv_blocks_evicted",
             "Evicted KV blocks, by policy and reason.");
  std::uint64_t superseded = now.blocks_evicted;
  for (std::size_t i = 0; i < kv::kEvictionCauses; ++i) {
    const auto cause = kv::cause_name(static_cast<kv::EvictionCause>(i));
    page.sample(now.blocks_evicted_by_cause[i], {{"policy", policy}, {"cause", cause}});
    superseded -= now.blocks_evicted_by_cause[i];
  }
  page.sample(superseded, {{"policy", policy}, {"cause", "superseded"}});
  page.counter("pagoda:kv_blocks_joined", "KV blocks computed twice at once and deduplicated.",
               now.blocks_deduplicated);
  page.counter("pagoda:kv_policy_dropped_pages",
               "KV pages that running sequences released because their KV policies said so.",
               now.pages_dropped);
  page.counter("pagoda:kv_policy_dropped_tokens",
               "Tokens that KV policies had dropped of ended requests, as their usage says.",
               readings.state.meters().policy_dropped_tokens());
}

// Returns the mean context, prompt and output so far, of the sequences that run; 0 where none does.
double context_mean(const std::vector<engine::TenantStats>& tenants) {
  std::uint64_t sequences = 0;
  std::uint64_t tokens = 0;
  for (const engine::TenantStats& tenant : tenants) {
    sequences += tenant.sequences_running;
    tokens += tenant.kv_tokens_held;
  }
  return sequences == 0 ? 0 : static_cast<double>(tokens) / static_cast<double>(sequences);
}

void write_requests(Exposition& page, const Readings& readings) {
  const engine::Snapshot& now = readings.now;
  page.gauge("pagoda:running_context_tokens_mean",
             "Mean tokens of running sequences, prompt and output so far; 0: none runs.",
             context_mean(readings.tenants));
  page.gauge("pagoda:prefill_tokens_per_second",
             "Prompt tokens that the model computed a second of late; 0: unknown.",
             now.prompt_tokens_per_second);
  page.begin(Kind::kGauge, "pagoda:requests_waiting",
             "Requests that wait, by what they waited for when last looked at.");
  for (std::size_t i = 0; i < now.waiting_by_reason.size(); ++i) {
    const auto reason = sched::wait_reason_name(static_cast<engine::WaitReason>(i));
    page.sample(now.waiting_by_reason[i], {{"reason", reason}});
  }
  page.gauge("pagoda:answers_paused", "Sequences that wait for their client to read.",
             now.sequences_paused);
  page.begin(Kind::kCounter, "pagoda:answers_finished", "Sequences by how they ended.");
  for (std::size_t i = 0; i < now.sequences_finished.size(); ++i) {
    const auto reason = engine::finish_name(static_cast<engine::FinishReason>(i));
    page.sample(now.sequences_finished[i], {{"reason", reason}});
  }
  page.counter("pagoda:preemptions", "Sequences that were preempted.", now.preemptions);
  page.counter("pagoda:rank_exchanged_bytes",
               "Bytes that the ranks of the model have sent to each other; 0 with one rank.",
               now.bytes_exchanged);
}

void write_steps(Exposition& page, const Readings& readings) {
  page.begin(Kind::kHistogram, "pagoda:step_seconds", "Time of a step by phase.");
  for (std::size_t i = 0; i < engine::kStepPhaseCount; ++i) {
    const auto phase = engine::step_phase_name(static_cast<engine::StepPhase>(i));
    page.sample(readings.distributions.phase_s[i].read(), {{"phase", phase}});
  }
  const engine::Distributions& d = readings.distributions;
  page.histogram("pagoda:step_time_seconds",
                 "Time of a step, which is the ITL of who decodes in it.", d.step_s);
  page.histogram("pagoda:step_time_predicted_seconds",
                 "Time that steps were predicted to take when they were launched.",
                 d.step_predicted_s);
  page.counter("pagoda:steps", "Steps that computed something.", readings.now.steps);
  page.counter("pagoda:rows_computed", "Tokens computed, of prompts and outputs.",
               readings.now.tokens_computed);
}

// Says what drafts cost and what they saved.
void write_draft_costs(Exposition& page, const engine::Snapshot& now) {
  page.counter("pagoda:draft_find_seconds", "Time in which the engine's thread looked for drafts.",
               now.draft_seconds - now.draft_model_seconds);
  page.counter("pagoda:draft_model_seconds", "Time in which it waited for the draft model.",
               now.draft_model_seconds);
  page.counter("pagoda:draft_rows_rejected", "Rows computed for draft tokens that were no output.",
               now.drafts.tokens - now.drafts.accepted);
  page.counter("pagoda:draft_steps_saved",
               "Steps, one for each sequence in them, that drafts made needless.",
               now.draft_steps_saved);
}

void write_tenants(Exposition& page, const Readings& readings) {
  const auto write = [&](Kind kind, std::string_view name, std::string_view help,
                         const auto& value_of) {
    page.begin(kind, name, help);
    for (const engine::TenantStats& tenant : readings.tenants) {
      page.sample(value_of(tenant), {{"tenant", tenant.name}});
    }
  };
  using Tenant = engine::TenantStats;
  write(Kind::kGauge, "pagoda:tenant_answers_running", "A tenant's running sequences.",
        [](const Tenant& tenant) { return tenant.sequences_running; });
  write(Kind::kGauge, "pagoda:tenant_requests_waiting", "A tenant's requests that wait.",
        [](const Tenant& tenant) { return tenant.requests_queued; });
  write(Kind::kGauge, "pagoda:tenant_kv_tokens", "Tokens that a tenant's running sequences hold.",
        [](const Tenant& tenant) { return tenant.kv_tokens_held; });
  write(Kind::kGauge, "pagoda:tenant_kv_blocks",
        "Cached KV blocks that are a tenant's own; the default tenant's are the public ones.",
        [](const Tenant& tenant) { return tenant.blocks_cached; });
  write(Kind::kCounter, "pagoda:tenant_rows_computed", "Tokens computed for a tenant.",
        [](const Tenant& tenant) { return tenant.tokens_computed; });
  write(Kind::kCounter, "pagoda:tenant_requests_finished", "A tenant's requests that ended.",
        [](const Tenant& tenant) { return tenant.use.requests_finished; });
  write(Kind::kCounter, "pagoda:tenant_requests_refused", "A tenant's requests over a limit.",
        [](const Tenant& tenant) { return tenant.use.requests_refused; });
  write(Kind::kCounter, "pagoda:tenant_prompt_tokens", "A tenant's prompt tokens.",
        [](const Tenant& tenant) { return tenant.use.prompt_tokens; });
  write(Kind::kCounter, "pagoda:tenant_prompt_tokens_cached", "Of them, those the cache had.",
        [](const Tenant& tenant) { return tenant.use.prompt_tokens_cached; });
  write(Kind::kCounter, "pagoda:tenant_generation_tokens", "Generated tokens of a tenant.",
        [](const Tenant& tenant) { return tenant.use.output_tokens; });
}

// The names follow Python's web servers. All paths that do not exist share one label.
void write_http(Exposition& page, const ServerMeters& meters) {
  page.begin(Kind::kCounter, "http_requests", "Replies by endpoint and status.");
  for (std::size_t endpoint = 0; endpoint <= endpoint_count(); ++endpoint) {
    for (std::size_t status = 0; status < ServerMeters::kStatusClasses; ++status) {
      const std::uint64_t replies = meters.replies(endpoint, status);
      if (replies == 0) continue;
      const std::string digits = std::to_string(status) + "xx";
      page.sample(replies, {{"handler", endpoint_path(endpoint)},
                            {"method", endpoint_method(endpoint)},
                            {"status", digits}});
    }
  }
}

}  // namespace

void write_pagoda_metrics(Exposition& page, const Readings& readings) {
  write_lookups(page, readings);
  write_transfers(page, readings);
  write_peers(page, readings);
  write_normalised(page, readings);
  write_blocks(page, readings);
  write_requests(page, readings);
  write_steps(page, readings);
  write_draft_costs(page, readings.now);
  write_tenants(page, readings);
  page.begin(Kind::kGauge, "pagoda:build_info", "Which server this is.");
  page.sample(1, {{"version", readings.state.version()}});
  page.gauge("pagoda:connections", "Connections that are open.",
             readings.state.meters().connections());
  write_http(page, readings.state.meters());
}

}  // namespace pagoda::server
