// StoreRemoval removes an owner's pages, or all, from every node of a store. It runs on the store's
// thread.
//
// Slots that move meanwhile take pages from a node that is looked at later to one that has been
// looked at. So a cluster is looked at twice, and a third time where the second found something. A
// node that is off is an error: nobody has looked at its pages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "kv/tiers/page_store.h"
#include "store/remote/node_set.h"
#include "store/remote/page_removal.h"

namespace pagoda::store {

class StoreRemoval : public std::enable_shared_from_this<StoreRemoval> {
 public:
  using Done = std::function<void(Result<kv::Removal>)>;

  // `nodes` outlives the removal.
  StoreRemoval(NodeSet& nodes, const RemovalOrder& order, Done done)
      : nodes_(nodes), order_(order), done_(std::move(done)) {}

  // Call once. The removal lives as long as replies are expected.
  void start();

 private:
  void take(const NodeAddress& node, const Result<kv::Removal>& result, bool redirected);
  void fail(const NodeAddress& node, const std::string& why);
  void end_node();

  NodeSet& nodes_;
  RemovalOrder order_;
  Done done_;
  kv::Removal removal_;
  std::string failure_;  // empty: none
  int passes_ = 0;
  std::size_t nodes_open_ = 0;
  bool again_ = false;  // this pass found something, or slots that move
};

}  // namespace pagoda::store
