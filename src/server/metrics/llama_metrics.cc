// The metrics that tools for llama.cpp read, which have no labels. Rates are means since the start,
// whereas reading them resets them in llama.cpp.
#include "server/metrics/metrics.h"

namespace pagoda::server {
namespace {

double rate(std::uint64_t amount, double seconds) {
  return seconds == 0 ? 0.0 : static_cast<double>(amount) / seconds;
}

}  // namespace

void write_llama_metrics(Exposition& page, const Readings& readings) {
  const engine::Snapshot& now = readings.now;
  const double prompt_s = readings.distributions.prefill_s.read().sum;
  const double answer_s = readings.distributions.decode_s.read().sum;
  const std::uint64_t computed = now.prompt_tokens - now.prompt_tokens_cached;
  page.counter("llamacpp:prompt_tokens", "Prompt tokens that were computed.", computed);
  page.counter("llamacpp:prompt_tokens_cached", "Prompt tokens that the cache had.",
               now.prompt_tokens_cached);
  page.counter("llamacpp:prompt_seconds", "Time of requests before their first token.", prompt_s);
  page.counter("llamacpp:tokens_predicted", "Generated tokens.", now.output_tokens);
  page.counter("llamacpp:tokens_predicted_seconds", "Time of requests after their first token.",
               answer_s);
  page.counter("llamacpp:n_decode", "Steps that computed something.", now.steps);
  page.gauge("llamacpp:n_tokens_max", "The longest prompt and output together.",
             now.context_tokens_longest);
  page.gauge("llamacpp:prompt_tokens_seconds", "Prompt tokens computed a second, since the start.",
             rate(computed, prompt_s));
  page.gauge("llamacpp:predicted_tokens_seconds", "Generated tokens a second, since the start.",
             rate(now.output_tokens, answer_s));
  page.gauge("llamacpp:requests_processing", "Running sequences.", now.sequences_running);
  page.gauge("llamacpp:requests_deferred", "Requests that wait.", now.requests_waiting);
  page.gauge("llamacpp:n_busy_slots_per_decode", "Sequences in a step, on average.",
             rate(now.sequences_stepped, static_cast<double>(now.steps)));
  page.counter("llamacpp:spec_decode_num_drafts", "Drafts that were verified.", now.drafts.drafts);
  page.counter("llamacpp:spec_decode_num_draft_tokens", "Draft tokens that were verified.",
               now.drafts.tokens);
  page.counter("llamacpp:spec_decode_num_accepted_tokens", "Draft tokens that were accepted.",
               now.drafts.accepted);
  page.begin(Exposition::Kind::kCounter, "llamacpp:spec_decode_num_accepted_tokens_per_pos",
             "Drafts whose token at this position was accepted.");
  write_accepted_positions(page, now);
}

}  // namespace pagoda::server
