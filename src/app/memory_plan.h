// The memory of a machine or of GPUs as a sum: weights + workspace + KV, and how many requests the
// KV is enough for. Pure; bytes of tokens come from kv_size.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/kv_size.h"
#include "base/result.h"
#include "gguf/file.h"

namespace pagoda::app {

// A draft model beside the one that is served: it takes the share of KV memory in which its cache
// holds as many tokens, in the same format where its rows can be kept so, else in bf16.
struct DraftMemory {
  std::vector<KvLayers> groups;
  std::int64_t weights_bytes = 0;
};

struct MemoryQuery {
  std::vector<KvLayers> groups;
  KvFormat format;
  std::int64_t memory_bytes = 0;     // of each rank, that may be taken
  std::int64_t weights_bytes = 0;    // of all ranks together, which divide them evenly
  std::int64_t workspace_bytes = 0;  // of each rank
  std::int64_t ranks = 1;
  std::int64_t block_size = 16;           // tokens; a request takes whole blocks
  std::int64_t chunk_tokens = 1;          // most tokens of a prompt that are computed at once
  std::optional<DraftMemory> draft = {};  // with one rank alone
};

struct MemoryPlan {
  std::int64_t weights_bytes = 0;   // of each rank, as the rest
  std::int64_t kv_bytes = 0;        // that weights and workspace leave; below 0: so much is lacking
  std::int64_t draft_kv_bytes = 0;  // the draft model's part of that
  std::int64_t tokens = 0;          // that the cache holds where no window forgets any
  std::int64_t token_bytes = 0;     // of one sequence, on the fullest rank
};
Result<MemoryPlan> plan_memory(const MemoryQuery& query);

// The bytes of the fullest rank that a request of so many tokens takes.
Result<std::int64_t> request_bytes(const MemoryQuery& query, std::int64_t tokens);
// How many requests of so many tokens fit at once. None where a server would not take one alone:
// beside it every group of layers keeps a block free, into which a partial prefix match is copied,
// and its windows hold the tokens of a chunk, too (sched/block_demand.h).
Result<std::int64_t> requests_at(const MemoryQuery& query, std::int64_t tokens);
// The longest context, in whole blocks, at which so many requests fit at once; 0: not even one
// block each. At most kPlannedTokensMax.
inline constexpr std::int64_t kPlannedTokensMax = std::int64_t{1} << 30;
Result<std::int64_t> longest_context(const MemoryQuery& query, std::int64_t requests);
// The fewest ranks with which so many requests fit at once; 0: 1,024 are not enough.
Result<std::int64_t> ranks_for(const MemoryQuery& query, std::int64_t tokens,
                               std::int64_t requests);

// Returns how much a server must be given for the cache, all ranks together, for as many blocks.
Result<std::int64_t> served_kv_bytes(const MemoryQuery& query);

// The bytes of a model's weights in its file. Packed for a device they take about as much.
std::int64_t weights_in_file(const gguf::File& file);

}  // namespace pagoda::app
