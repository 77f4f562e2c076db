// How a sequence's end is recorded and told: at once, or, where its prompt is handed over to
// another server, when its blocks are where others find them.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/open_request.h"
#include "engine/reply.h"
#include "engine/tiers/load_record.h"
#include "kv/cache.h"

namespace pagoda::engine {

class Tiers;

// Returns what became of the sequence, without the blocks that it wrote.
SequenceRecord record_of(const OpenSequence& seq, const LoadRecord& load, std::int64_t now_ns);

// Returns the whole blocks of a prompt that other servers are to find. The sequence still holds
// them.
std::vector<kv::NodeId> blocks_to_hand_over(const OpenSequence& seq, FinishReason reason,
                                            std::uint64_t block_tokens);

struct SequenceEnd {
  FinishReason reason = FinishReason::kStop;
  SequenceRecord record;
  std::string message;
  std::vector<kv::NodeId> whole_blocks;  // to hand over
};

// `tiers` may be nullptr.
void tell_end(OpenSequence& seq, SequenceEnd end, const kv::Cache& cache, Tiers* tiers,
              std::int64_t now_ns);

}  // namespace pagoda::engine
