#include "sched/step_work.h"

#include <algorithm>
#include <limits>

namespace pagoda::sched {
namespace {

// Adds up min(position + 1, limit) over the positions [first, first + tokens).
double bounded_keys(std::uint64_t first, std::uint64_t tokens, std::uint64_t limit) {
  const std::uint64_t growing = limit > first ? std::min(limit - first, tokens) : 0;
  const auto rows = static_cast<double>(growing);
  return rows * static_cast<double>(first) + rows * (rows + 1) / 2 +
         static_cast<double>(tokens - growing) * static_cast<double>(limit);
}

}  // namespace

double query_key_pairs(const SequenceTask& task, std::uint64_t first, std::uint64_t tokens) {
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t held = task.drops ? task.tokens_held_max(first + tokens) : kAll;
  double pairs = 0;
  for (const kv::memory::AttentionSpec& spec : task.scope->groups()) {
    const std::uint64_t limit =
        spec.window == 0 ? held : std::uint64_t{spec.window} + std::uint64_t{spec.sinks};
    pairs += bounded_keys(first, tokens, limit);
  }
  return pairs / static_cast<double>(std::max<std::size_t>(task.scope->groups().size(), 1));
}

void StepWork::add(const ScheduledChunk& chunk) {
  tokens += chunk.tokens;
  if (chunk.drafts == 0 && chunk.tokens > 1) {
    prompt_tokens += chunk.tokens;
    prompt_keys += query_key_pairs(*chunk.task, chunk.first, chunk.tokens);
  } else {
    // A draft's queries look at the same keys, which are read once.
    decode_keys += query_key_pairs(*chunk.task, chunk.first + chunk.tokens - 1, 1);
  }
}

StepWork work_of(std::span<const ScheduledChunk> chunks) {
  StepWork work;
  for (const ScheduledChunk& chunk : chunks) work.add(chunk);
  return work;
}

}  // namespace pagoda::sched
