// KV memory arithmetic as a report; the numbers come from app/kv_size.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/kv_size.h"
#include "base/result.h"

namespace pagoda::inspect {

struct SizeReport {
  std::string text;  // for people
  std::string json;  // one value
};

// Asks how many blocks a sequence takes.
struct BlockQuestion {
  std::int64_t tokens = 0;
  std::int64_t block_size = 0;  // in tokens
};

struct SizeQuestion {
  app::KvSizeQuery query;
  std::string model;                // as it was named, where the query's groups are a model's
  std::int64_t context_length = 0;  // the model's; 0: the groups are no model's
  std::optional<BlockQuestion> blocks;
};
Result<SizeReport> size_report(const SizeQuestion& question);

// The attention heads of a model that are compared in kind.
struct HeadCounts {
  std::int64_t layers = 0;
  std::int64_t heads = 0;     // of queries
  std::int64_t kv_heads = 0;  // divides `heads`
  std::int64_t head_dim = 0;
};
// Compares MHA, GQA, MQA and MLA. The query's own groups are not looked at.
Result<SizeReport> compare_heads(const HeadCounts& counts, const app::KvSizeQuery& query);

// Lists well-known model sizes at several lengths.
Result<SizeReport> known_sizes();

}  // namespace pagoda::inspect
