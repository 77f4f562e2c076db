#include "replay/fleet/conversations.h"

#include <span>

namespace pagoda::replay {

std::vector<std::uint32_t> find_conversations(const Trace& trace, const BlockNumbers& numbers) {
  constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<std::uint32_t> ended(numbers.unique(), kNone);  // [block]: whose prompt ended there
  std::vector<std::uint32_t> conversations;
  conversations.reserve(trace.requests.size());
  std::uint32_t fresh = 0;
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const std::span<const std::uint32_t> blocks = numbers.of(trace.requests[i]);
    const std::uint64_t known = numbers.known(i);
    std::uint32_t conversation = known > 0 ? ended[blocks[known - 1]] : kNone;
    if (conversation == kNone) conversation = fresh++;
    conversations.push_back(conversation);
    // Only blocks that are this request's own: others may begin many conversations.
    for (std::uint64_t at = blocks.size(); at > known && at + 2 > blocks.size(); --at) {
      ended[blocks[at - 1]] = conversation;
    }
  }
  return conversations;
}

}  // namespace pagoda::replay
