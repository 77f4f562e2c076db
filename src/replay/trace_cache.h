// The real cache under a trace: pool, tree and policy, each block one token of a cache whose blocks
// hold one token.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "kv/cache.h"
#include "replay/run.h"
#include "replay/trace.h"

namespace pagoda::replay {

class TraceCache {
 public:
  // A request in the cache. It must not outlive it.
  struct Held {
    kv::Sequence sequence;
    std::uint64_t found;  // of its first blocks
    std::uint64_t kept;   // the first blocks that it has room for
  };

  // Keeps a reference to the trace. Of unique_blocks (BlockNumbers) different ones more than those
  // would stay free.
  TraceCache(const Trace& trace, const CacheRun& run, std::uint64_t unique_blocks);

  std::uint64_t blocks() const { return cache_->pool().blocks(); }
  kv::CurveStats curve() const { return cache_->curve().stats(); }

  // How many of the request's first blocks are there. A pure question.
  std::uint64_t found(const TraceRequest& request) const;
  // Holds what is there of the request's first `blocks` blocks and makes room for the rest of them,
  // as far as the whole cache goes. Nothing, and nothing was done, where others hold too much.
  std::optional<Held> open(const TraceRequest& request, std::uint64_t blocks);
  // The blocks that were not found are there now.
  void commit(const TraceRequest& request, Held& held);
  void close(Held& held) { cache_->close(held.sequence); }

 private:
  const Trace& trace_;
  std::unique_ptr<kv::Cache> cache_;
  kv::CacheScope scope_;
};

}  // namespace pagoda::replay
