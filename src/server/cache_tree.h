// GET /cache/tree: the prefix tree, depth first, its first 10,000 nodes.
//
// One snapshot serves every request that waits for it: the engine's thread takes it between two
// steps, a text worker writes its JSON, and requests that arrive meanwhile wait for the next one.
// So at most one snapshot is in memory, and every request gets one that was begun after it arrived.
#pragma once

#include <memory>

#include "server/deferred_reply.h"
#include "server/option_name.h"
#include "server/served_model.h"
#include "server/text_workers.h"

namespace pagoda::server {

class CacheTreeReader {
 public:
  // The workers must outlive the reader.
  explicit CacheTreeReader(TextWorkers& workers);
  ~CacheTreeReader();
  CacheTreeReader(const CacheTreeReader&) = delete;
  CacheTreeReader& operator=(const CacheTreeReader&) = delete;

  // Any thread may call this. `give` is never called when the engine is destroyed first.
  void ask(engine::Engine& engine, DeferredReply::Give give);

 private:
  struct Shared;
  // The state is shared because the engine may take a snapshot after the reader is destroyed.
  std::shared_ptr<Shared> shared_;
};

// Throws ApiError (404) unless the server publishes cache events.
std::unique_ptr<DeferredReply> show_tree(const ServedModel& model, CacheTreeReader& reader,
                                         const OptionName& option_name);

}  // namespace pagoda::server
