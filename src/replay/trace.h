// A recorded stream of requests in Mooncake's format, one JSON object a line, plain or gzip:
//
//   {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}
//
// hash_ids names the blocks of the input from the first; the last may be partly filled. A block is
// its id and all ids before it. Ids are any whole numbers of 64 bits; here they are numbered from 0
// in order of appearance, so that each is one token of the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace pagoda::replay {

struct TraceRequest {
  std::uint64_t first = 0;   // in Trace::ids
  std::uint64_t blocks = 0;  // without the entry that ends it
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;  // 0 where the line does not say
  double timestamp_ms = 0;          // likewise
};

struct Trace {
  std::string name;  // the path as given
  std::vector<TraceRequest> requests;
  // Each request's blocks, then one entry that stands for nothing: Cache::match() leaves the last
  // token of a prompt to be computed, and a replayed request may be found whole.
  std::vector<TokenId> ids;
  std::uint64_t lines_malformed = 0;

  std::uint64_t touches() const { return ids.size() - requests.size(); }
  std::span<const TokenId> prompt(const TraceRequest& request) const {
    return std::span(ids).subspan(request.first, request.blocks + 1);
  }
};

struct TraceEvents {
  // A line that is no request; it is counted and skipped.
  std::function<void(std::uint64_t line, const std::string& reason)> on_malformed;
  // Reports progress in bytes of the file as it is stored, compressed or not. Total is 0 when
  // unknown.
  std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)> on_progress;
};

// Requests in the order of the file. Blank lines are no lines. A file that cannot be read, or whose
// gzip data is broken, is an error.
Result<Trace> read_trace(const std::string& path, const TraceEvents& events);

}  // namespace pagoda::replay
