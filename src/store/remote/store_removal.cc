#include "store/remote/store_removal.h"

#include <fmt/format.h>

#include <utility>

namespace pagoda::store {
namespace {

constexpr int kPassesMin = 2;
constexpr int kPassesMax = 3;

}  // namespace

void StoreRemoval::start() {
  ++passes_;
  again_ = false;
  const std::vector<NodeLink*> nodes = nodes_.owners();
  nodes_open_ = nodes.size() + 1;  // one more, so that the last of them ends here
  for (NodeLink* node : nodes) {
    const NodeAddress address = node->address();
    if (!node->is_on()) {
      fail(address, "it is off, and nobody has looked at its pages");
      end_node();
      continue;
    }
    const auto removal = std::make_shared<PageRemoval>(
        order_,
        [self = shared_from_this(), address](const Result<kv::Removal>& result, bool redirected) {
          self->take(address, result, redirected);
        });
    removal->start(node->connection());
  }
  end_node();
}

void StoreRemoval::take(const NodeAddress& node, const Result<kv::Removal>& result,
                        bool redirected) {
  if (!result.ok()) {
    fail(node, result.error().message);
  } else {
    removal_.pages += result.value().pages;
    removal_.bytes += result.value().bytes;
    removal_.note = result.value().note;
    again_ |= redirected || result.value().pages > 0;
  }
  end_node();
}

void StoreRemoval::fail(const NodeAddress& node, const std::string& why) {
  if (!failure_.empty()) return;
  failure_ = nodes_.is_cluster() ? fmt::format("{}: {}", node.shown(), why) : why;
}

void StoreRemoval::end_node() {
  if (--nodes_open_ > 0) return;
  if (failure_.empty() && !nodes_.has_all_slots()) failure_ = "slots have no node now";
  if (!failure_.empty()) {
    const std::string removed =
        nodes_.is_cluster() ? fmt::format(" ({} pages were removed)", removal_.pages) : "";
    return done_(Error{ErrorCode::kIo, failure_ + removed});
  }
  const bool look_again =
      nodes_.is_cluster() && (passes_ < kPassesMin || (again_ && passes_ < kPassesMax));
  if (look_again) return start();
  if (nodes_.is_cluster() && again_)
    removal_.note = "slots moved or pages came meanwhile: ask again";
  done_(removal_);
}

}  // namespace pagoda::store
