// Which requests of a trace belong to one conversation. Traces do not say; a request goes on with
// the conversation whose last prompt it repeats.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/block_numbers.h"
#include "replay/trace.h"

namespace pagoda::replay {

// [request]: the number of its conversation. A request whose deepest known block is where an
// earlier prompt ended goes on with that prompt's conversation; the last block may be partly
// filled, so that the one before it is an end, too. A request that leaves an earlier one in its
// middle shares a beginning, such as a system prompt, and is a conversation of its own.
std::vector<std::uint32_t> find_conversations(const Trace& trace, const BlockNumbers& numbers);

}  // namespace pagoda::replay
