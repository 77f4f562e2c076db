#include "app/memory_plan.h"

#include <algorithm>

namespace pagoda::app {
namespace {

constexpr std::int64_t kRanksMax = 1024;

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return value / unit + (value % unit != 0 ? 1 : 0);
}

KvSizeQuery sequence_of(const MemoryQuery& query, std::int64_t tokens) {
  return {.groups = query.groups,
          .format = query.format,
          .sequence_length = tokens,
          .batch_size = 1,
          .ranks = query.ranks,
          .block_size = query.block_size};
}

// One token, which no window forgets.
Result<KvSize> token_size(const MemoryQuery& query) {
  KvSizeQuery token = sequence_of(query, 1);
  for (KvLayers& group : token.groups) group.window = 0;
  return kv_size(token);
}

Result<std::int64_t> token_bytes_of(const MemoryQuery& query) {
  ASSIGN_OR_RETURN(const KvSize size, token_size(query));
  return size.per_rank.stored;
}

Result<std::int64_t> whole_blocks(const MemoryQuery& query, std::int64_t tokens) {
  return checked_product(rounded_up(tokens, query.block_size), query.block_size, "block_size");
}

// The bytes that a cache must have for a request alone: sched::BlockDemand::blocks_alone in bytes.
Result<std::int64_t> bytes_alone(const MemoryQuery& query, std::int64_t tokens) {
  ASSIGN_OR_RETURN(const std::int64_t whole, whole_blocks(query, tokens));
  KvSizeQuery peak = sequence_of(query, whole);
  for (KvLayers& group : peak.groups) {
    if (group.window > 0) group.window += query.chunk_tokens;
  }
  ASSIGN_OR_RETURN(const KvSize held, kv_size(peak));
  ASSIGN_OR_RETURN(const std::int64_t token_bytes, token_bytes_of(query));
  ASSIGN_OR_RETURN(const std::int64_t block,
                   checked_product(token_bytes, query.block_size, "block_size"));
  std::int64_t bytes = 0;
  if (!__builtin_add_overflow(held.per_rank.stored, block, &bytes)) return bytes;
  return Error{ErrorCode::kOutOfRange, "`sequence_length`: takes more than 2^63 - 1 bytes"};
}

std::int64_t kv_bytes_of(const MemoryQuery& query) {
  const std::int64_t drafts = query.draft ? query.draft->weights_bytes : 0;
  return query.memory_bytes - rounded_up(query.weights_bytes, query.ranks) - drafts -
         query.workspace_bytes;
}

// The bytes of a token in the draft model's cache; 0: there is none.
Result<std::int64_t> draft_token_bytes(const MemoryQuery& query) {
  if (!query.draft) return std::int64_t{0};
  MemoryQuery drafts = query;
  drafts.groups = query.draft->groups;
  const bool is_kept =
      std::all_of(drafts.groups.begin(), drafts.groups.end(),
                  [&](const KvLayers& layers) { return keeps_rows(query.format, layers); });
  if (!is_kept) drafts.format = *find_kv_format("bf16");
  return token_bytes_of(drafts);
}

// The part of so many bytes that is not the draft model's: as engine::PagedBackend shares memory.
std::int64_t own_part(std::int64_t kv_bytes, std::int64_t token_bytes, std::int64_t draft_bytes) {
  const double share = static_cast<double>(token_bytes) /
                       (static_cast<double>(token_bytes) + static_cast<double>(draft_bytes));
  const std::int64_t all = std::max<std::int64_t>(kv_bytes, 0);
  return draft_bytes == 0 ? all : static_cast<std::int64_t>(static_cast<double>(all) * share);
}

}  // namespace

Result<MemoryPlan> plan_memory(const MemoryQuery& query) {
  ASSIGN_OR_RETURN(const std::int64_t token_bytes, token_bytes_of(query));
  ASSIGN_OR_RETURN(const std::int64_t draft_bytes, draft_token_bytes(query));
  ASSIGN_OR_RETURN(const std::int64_t block_bytes,
                   checked_product(token_bytes, query.block_size, "block_size"));
  const std::int64_t kv_bytes = kv_bytes_of(query);
  const std::int64_t own = own_part(kv_bytes, token_bytes, draft_bytes);
  return MemoryPlan{.weights_bytes = rounded_up(query.weights_bytes, query.ranks),
                    .kv_bytes = kv_bytes,
                    .draft_kv_bytes = std::max<std::int64_t>(kv_bytes, 0) - own,
                    .tokens = own / block_bytes * query.block_size,
                    .token_bytes = token_bytes};
}

Result<std::int64_t> request_bytes(const MemoryQuery& query, std::int64_t tokens) {
  ASSIGN_OR_RETURN(const std::int64_t whole, whole_blocks(query, tokens));
  ASSIGN_OR_RETURN(const KvSize size, kv_size(sequence_of(query, whole)));
  return size.per_rank.stored;
}

Result<std::int64_t> requests_at(const MemoryQuery& query, std::int64_t tokens) {
  ASSIGN_OR_RETURN(const std::int64_t bytes, request_bytes(query, tokens));
  ASSIGN_OR_RETURN(const std::int64_t alone, bytes_alone(query, tokens));
  ASSIGN_OR_RETURN(const MemoryPlan plan, plan_memory(query));
  const std::int64_t own = std::max<std::int64_t>(plan.kv_bytes, 0) - plan.draft_kv_bytes;
  return own < alone ? 0 : own / bytes;
}

Result<std::int64_t> served_kv_bytes(const MemoryQuery& query) {
  ASSIGN_OR_RETURN(const MemoryPlan plan, plan_memory(query));
  if (query.ranks == 1) return plan.kv_bytes;
  ASSIGN_OR_RETURN(const KvSize token, token_size(query));
  return checked_product(token.all_ranks.stored, plan.tokens, "tokens");
}

Result<std::int64_t> longest_context(const MemoryQuery& query, std::int64_t requests) {
  std::int64_t fits = 0;  // blocks
  std::int64_t too_many = kPlannedTokensMax / query.block_size + 1;
  while (too_many - fits > 1) {
    const std::int64_t blocks = fits + (too_many - fits) / 2;
    ASSIGN_OR_RETURN(const std::int64_t at, requests_at(query, blocks * query.block_size));
    (at >= requests ? fits : too_many) = blocks;
  }
  return fits * query.block_size;
}

Result<std::int64_t> ranks_for(const MemoryQuery& query, std::int64_t tokens,
                               std::int64_t requests) {
  MemoryQuery more = query;
  for (more.ranks = 1; more.ranks <= kRanksMax; ++more.ranks) {
    ASSIGN_OR_RETURN(const std::int64_t at, requests_at(more, tokens));
    if (at >= requests) return more.ranks;
  }
  return 0;
}

std::int64_t weights_in_file(const gguf::File& file) {
  std::int64_t bytes = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    bytes += static_cast<std::int64_t>(tensor.bytes.size());
  }
  return bytes;
}

}  // namespace pagoda::app
