#include "engine/page_drops.h"

namespace pagoda::engine {

std::optional<sched::PageDrops> page_drops_of(const Request& request, const RequestLimits& limits,
                                              const TenantLimits& tenant,
                                              std::uint32_t block_tokens) {
  const kv::KvPolicy policy = policy_of(request, limits);
  if (!policy.selects_pages()) return std::nullopt;
  const kv::SequenceLengths lengths = lengths_of(request, context_of(request, limits, tenant));
  if (policy.tokens_dropped(lengths, block_tokens) == 0) return std::nullopt;
  return sched::PageDrops{policy, lengths.prompt, block_tokens};
}

}  // namespace pagoda::engine
