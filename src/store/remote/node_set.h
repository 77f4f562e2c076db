// NodeSet has the servers of a store and knows which of them keeps which slot: the one server of
// its URL; the nodes of a cluster, as its nodes tell; or the server that sentinels name. One
// thread.
//
// Maps of slots are asked for when there is a reason to doubt the last one, and now and then, but
// never faster than kMapPauseNs: a cluster that lies or changes all the time costs that much. A
// node that a redirection names is believed only if a map has it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "net/tls_client.h"
#include "store/remote/cluster_map.h"
#include "store/remote/node_link.h"
#include "store/remote/remote_options.h"

namespace pagoda::store {

inline constexpr std::int64_t kMapPauseNs = 100'000'000;

class NodeSet {
 public:
  // References outlive the set.
  NodeSet(const RemoteOptions& options, const net::TlsClient* tls, const Clock& clock);

  bool is_cluster() const { return options_.url.layout == RemoteLayout::kCluster; }
  // Returns the slot of a key; 0 where slots mean nothing.
  std::uint16_t slot_of_key(std::string_view key) const { return is_cluster() ? slot_of(key) : 0; }
  // Null: nobody is known to keep the slot. The node may be off.
  NodeLink* node_of(std::uint16_t slot) const { return owners_[slot]; }
  // Null: no map has that node.
  NodeLink* node_at(const NodeAddress& address) const;
  // Nodes that keep slots.
  const std::vector<NodeLink*>& owners() const { return data_; }
  // A node said that the slot is another's now.
  void give_slot(std::uint16_t slot, NodeLink& node) { owners_[slot] = &node; }
  // The map may be out of date.
  void doubt_map() { in_doubt_ = true; }

  // Moves all connections, gives up those that are stalled, asks for maps and follows them. Links
  // live until the next call.
  void move();
  // True: a node that keeps slots is on, and all of them have been tried.
  bool is_ready() const;
  std::size_t nodes_on() const;
  bool has_all_slots() const;
  // Says for people which nodes are off and why, or what is wrong with the map; or nothing.
  std::string condition() const;

  // Everything that poll() should look at, and when move() should be called in any case.
  const std::vector<std::unique_ptr<NodeLink>>& links() const { return links_; }
  std::int64_t next_due_ns() const;

 private:
  NodeLink* link_to(const NodeAddress& address) const;
  NodeLink& add_link(const NodeAddress& address, NodeLink::Role role);
  void add_first_links();
  bool asks_for_maps() const { return options_.url.layout != RemoteLayout::kServer; }
  // True: the link may be asked for a map.
  bool knows_map(const NodeLink& link) const;
  std::int64_t map_due_ns() const;
  void ask_for_map();
  void take_map_reply(const NodeLink& link, const Reply& reply);
  void follow(const ClusterMap& map);
  void drop_strangers();

  const RemoteOptions& options_;
  const net::TlsClient* tls_;
  const Clock& clock_;
  std::vector<NodeLink*> data_;  // nodes of the last map
  std::array<NodeLink*, kSlots> owners_ = {};

  bool in_doubt_ = true;
  std::optional<ClusterMap> next_map_;  // a map that has come and is not followed yet
  NodeLink* asked_ = nullptr;           // who owes us a map
  std::int64_t asked_ns_ = 0;
  std::uint64_t question_ = 0;
  std::size_t turn_ = 0;  // which link is asked next
  std::string map_condition_;
  std::vector<std::unique_ptr<NodeLink>> links_;  // the last member: lost commands come back to us
};

}  // namespace pagoda::store
