// GET /cache/tree: the prefix tree, depth first, its first 10,000 nodes.
//
// One drawing serves all who wait for it: the engine's thread draws between two steps, a thread for
// long work writes the JSON, and whoever asks meanwhile waits for the next drawing. So at most one
// is in memory however many ask, and everyone gets one that was begun after the asking.
#pragma once

#include <memory>

#include "server/deferred_reply.h"
#include "server/served_model.h"
#include "server/text_workers.h"

namespace pagoda::server {

class TreeBoard {
 public:
  // The workers must outlive it.
  explicit TreeBoard(TextWorkers& workers);
  ~TreeBoard();
  TreeBoard(const TreeBoard&) = delete;
  TreeBoard& operator=(const TreeBoard&) = delete;

  // Any thread. The engine may be dropped before it has drawn: nothing is given then.
  void ask(engine::Engine& engine, DeferredReply::Give give);

 private:
  struct Shared;
  // The engine may draw after the board is gone.
  std::shared_ptr<Shared> shared_;
};

// Throws ApiError: 404 unless the server tells events.
std::unique_ptr<DeferredReply> show_tree(const ServedModel& model, TreeBoard& board);

}  // namespace pagoda::server
