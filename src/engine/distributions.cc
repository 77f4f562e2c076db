#include "engine/distributions.h"

#include "base/clock.h"

namespace pagoda::engine {

void Distributions::observe_phase(StepPhase phase, std::int64_t from_ns, std::int64_t to_ns) {
  phase_s[static_cast<std::size_t>(phase)].observe(seconds_between(from_ns, to_ns));
}

void Distributions::observe_sequence(const SequenceRecord& record) {
  total_s.observe(record.total_s());
  queue_s.observe(record.queue_s());
  inference_s.observe(seconds_between(record.started_ns, record.finished_ns));
  prefill_s.observe(seconds_between(record.started_ns, record.first_token_ns));
  decode_s.observe(seconds_between(record.first_token_ns, record.finished_ns));
  if (record.gaps.count > 0) {
    token_mean_s.observe(static_cast<double>(record.gaps.sum_ns) * 1e-9 /
                         static_cast<double>(record.gaps.count));
  }
  output_tokens.observe(static_cast<double>(record.output_tokens));
  prompt_tokens_computed.observe(static_cast<double>(record.prompt_tokens_computed));
}

}  // namespace pagoda::engine
