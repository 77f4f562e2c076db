// The metrics that dashboards and gateways for vLLM read, with vLLM's labels and meanings.
#include <ctime>

#include "server/metrics/metrics.h"

namespace pagoda::server {
namespace {

using Kind = Exposition::Kind;
using engine::FinishReason;
using engine::WaitReason;

std::uint64_t waiting(const engine::Snapshot& now, WaitReason reason) {
  return now.waiting_by_reason[static_cast<std::size_t>(reason)];
}

std::uint64_t finished(const engine::Snapshot& now, FinishReason reason) {
  return now.sequences_finished[static_cast<std::size_t>(reason)];
}

double share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
}

void write_load(Exposition& page, const engine::Snapshot& now) {
  page.gauge("vllm:num_requests_running", "Running sequences.", now.sequences_running);
  page.gauge("vllm:num_requests_waiting", "Requests that wait.", now.requests_waiting);
  const std::uint64_t deferred = waiting(now, WaitReason::kTenant) +
                                 waiting(now, WaitReason::kContextClass) +
                                 waiting(now, WaitReason::kPrefix);
  page.begin(Kind::kGauge, "vllm:num_requests_waiting_by_reason",
             "Requests that wait for room (capacity), or for something else (deferred).");
  page.sample(now.requests_waiting - deferred, {{"reason", "capacity"}});
  page.sample(deferred, {{"reason", "deferred"}});
  page.gauge("vllm:kv_cache_usage_perc",
             "Share of the KV blocks that running requests hold; 1 is all of them.",
             share(now.blocks_active(), now.blocks_all));
}

// Names that vLLM had before, which routers and dashboards still read.
void write_older_names(Exposition& page, const engine::Snapshot& now) {
  const engine::LookupCounts& lookups = now.lookups;
  page.gauge("vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc by its older name.",
             share(now.blocks_active(), now.blocks_all));
  page.gauge("vllm:gpu_prefix_cache_hit_rate",
             "Share of the prompt tokens looked for that the cache had, since the start.",
             share(lookups.tokens_found, lookups.tokens_asked));
  page.counter("vllm:gpu_prefix_cache_queries", "vllm:prefix_cache_queries by its older name.",
               lookups.tokens_asked);
  page.counter("vllm:gpu_prefix_cache_hits", "vllm:prefix_cache_hits by its older name.",
               lookups.tokens_found);
}

void write_information(Exposition& page, const Readings& readings) {
  const std::string blocks = std::to_string(readings.now.blocks_all);
  page.begin(Kind::kGauge, "vllm:cache_config_info", "How the KV cache is laid out.");
  page.sample(1, {{"block_size", fact_text(readings.model, "block_size")},
                  {"num_gpu_blocks", blocks},
                  {"cache_dtype", fact_text(readings.model, "kv_cache_dtype")},
                  {"enable_prefix_caching", fact_text(readings.model, "prefix_caching")}});
  page.begin(Kind::kGauge, "vllm:lora_requests_info", "Adapters in use: there are none.");
  page.sample(std::time(nullptr),
              {{"max_lora", "0"}, {"waiting_lora_adapters", ""}, {"running_lora_adapters", ""}});
}

void write_counts(Exposition& page, const engine::Snapshot& now) {
  page.counter("vllm:prefix_cache_queries", "Prompt tokens that were looked for in the cache.",
               now.lookups.tokens_asked);
  page.counter("vllm:prefix_cache_hits", "Prompt tokens that the cache had.",
               now.lookups.tokens_found);
  page.counter("vllm:num_preemptions", "Sequences that were preempted.", now.preemptions);
  page.counter("vllm:prompt_tokens", "Tokens of prompts that were computed.", now.prompt_tokens);
  page.counter("vllm:prompt_tokens_cached", "Of them, those that the cache had.",
               now.prompt_tokens_cached);
  page.counter("vllm:generation_tokens", "Generated tokens.", now.output_tokens);
  page.begin(Kind::kCounter, "vllm:prompt_tokens_by_source", "Prompt tokens by where KV is from.");
  page.sample(now.prompt_tokens - now.prompt_tokens_cached, {{"source", "local_compute"}});
  page.sample(now.prompt_tokens_cached, {{"source", "local_cache_hit"}});
  page.sample(0, {{"source", "external_kv_transfer"}});
  page.begin(Kind::kCounter, "vllm:request_success", "Sequences by how they ended.");
  page.sample(finished(now, FinishReason::kStop), {{"finished_reason", "stop"}});
  page.sample(finished(now, FinishReason::kLength) + finished(now, FinishReason::kContext),
              {{"finished_reason", "length"}});
  page.sample(finished(now, FinishReason::kCancelled) + finished(now, FinishReason::kDeadline),
              {{"finished_reason", "abort"}});
  page.sample(finished(now, FinishReason::kError) + finished(now, FinishReason::kLost) +
                  finished(now, FinishReason::kNoToken),
              {{"finished_reason", "error"}});
}

void write_drafts(Exposition& page, const engine::Snapshot& now) {
  page.counter("vllm:spec_decode_num_drafts", "Drafts that were verified.", now.drafts.drafts);
  page.counter("vllm:spec_decode_num_draft_tokens", "Draft tokens that were verified.",
               now.drafts.tokens);
  page.counter("vllm:spec_decode_num_accepted_tokens", "Draft tokens that were accepted.",
               now.drafts.accepted);
  page.begin(Kind::kCounter, "vllm:spec_decode_num_accepted_tokens_per_pos",
             "Drafts whose token at this position was accepted.");
  write_accepted_positions(page, now);
}

void write_times(Exposition& page, const engine::Distributions& d) {
  page.histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.",
                 d.first_token_s);
  page.histogram("vllm:inter_token_latency_seconds", "Between two tokens of a sequence.",
                 d.token_gap_s);
  page.histogram("vllm:request_time_per_output_token_seconds",
                 "A sequence's mean time between tokens.", d.token_mean_s);
  page.histogram("vllm:e2e_request_latency_seconds", "From arrival to a sequence's end.",
                 d.total_s);
  page.histogram("vllm:request_queue_time_seconds", "From arrival to the first launch.", d.queue_s);
  page.histogram("vllm:request_inference_time_seconds", "From the first launch to the end.",
                 d.inference_s);
  page.histogram("vllm:request_prefill_time_seconds", "From the first launch to the first token.",
                 d.prefill_s);
  page.histogram("vllm:request_decode_time_seconds", "From the first token to the end.",
                 d.decode_s);
}

void write_sizes(Exposition& page, const engine::Distributions& d, std::uint64_t context_tokens) {
  const auto most = static_cast<double>(context_tokens);
  page.histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", d.prompt_tokens, most);
  page.histogram("vllm:request_generation_tokens", "Generated tokens of a sequence.",
                 d.output_tokens, most);
  page.histogram("vllm:request_max_num_generation_tokens",
                 "Generated tokens of a request's longest sequence.", d.output_tokens_longest,
                 most);
  page.histogram("vllm:request_params_max_tokens", "max_tokens, where a request gave it.",
                 d.tokens_asked, most);
  page.histogram("vllm:request_prefill_kv_computed_tokens",
                 "Prompt tokens that were computed, not cached.", d.prompt_tokens_computed, most);
  page.histogram("vllm:request_params_n", "Sequences that a request asked for.", d.sequences_asked);
  page.histogram("vllm:iteration_tokens_total", "Tokens computed in a step.", d.step_tokens);
}

}  // namespace

void write_accepted_positions(Exposition& page, const engine::Snapshot& now) {
  const engine::AcceptedByPosition& accepted = now.drafts_accepted_at;
  for (std::size_t i = 0; i < accepted.size() && (i == 0 || accepted[i] > 0); ++i) {
    const std::string position = std::to_string(i);
    page.sample(accepted[i], {{"position", position}});
  }
}

void write_vllm_metrics(Exposition& page, const Readings& readings) {
  write_load(page, readings.now);
  write_older_names(page, readings.now);
  write_information(page, readings);
  write_counts(page, readings.now);
  write_drafts(page, readings.now);
  write_times(page, readings.distributions);
  write_sizes(page, readings.distributions, readings.model.context_tokens());
}

}  // namespace pagoda::server
