#include "store/remote/node_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pagoda::store {
namespace {

// The time between maps while a node is off, and while all is well.
constexpr std::int64_t kMapPauseOffNs = 500'000'000;
constexpr std::int64_t kMapPauseWellNs = 30'000'000'000;

}  // namespace

NodeSet::NodeSet(const RemoteOptions& options, const net::TlsClient* tls, const Clock& clock)
    : options_(options), tls_(tls), clock_(clock) {
  add_first_links();
  if (asks_for_maps()) return;
  data_ = {links_.front().get()};
  owners_.fill(data_.front());
}

void NodeSet::add_first_links() {
  const bool sentinels = options_.url.layout == RemoteLayout::kSentinel;
  for (const NodeAddress& each : options_.url.addresses) {
    if (link_to(each) != nullptr) continue;
    add_link(each, sentinels ? NodeLink::Role::kSentinel : NodeLink::Role::kServer);
  }
}

NodeLink& NodeSet::add_link(const NodeAddress& address, NodeLink::Role role) {
  return *links_.emplace_back(std::make_unique<NodeLink>(address, role, options_, tls_, clock_));
}

NodeLink* NodeSet::link_to(const NodeAddress& address) const {
  const auto found = std::find_if(links_.begin(), links_.end(),
                                  [&](const auto& link) { return link->address() == address; });
  return found == links_.end() ? nullptr : found->get();
}

NodeLink* NodeSet::node_at(const NodeAddress& address) const {
  NodeLink* const link = link_to(address);
  return std::find(data_.begin(), data_.end(), link) == data_.end() ? nullptr : link;
}

std::size_t NodeSet::nodes_on() const {
  return static_cast<std::size_t>(std::count_if(
      data_.begin(), data_.end(), [](const NodeLink* link) { return link->is_on(); }));
}

bool NodeSet::has_all_slots() const {
  return std::find(owners_.begin(), owners_.end(), nullptr) == owners_.end();
}

bool NodeSet::is_ready() const {
  const bool tried = std::all_of(data_.begin(), data_.end(),
                                 [](const NodeLink* link) { return link->was_tried(); });
  return tried && nodes_on() > 0;
}

std::string NodeSet::condition() const {
  if (!asks_for_maps()) return links_.front()->condition();
  std::string text;
  const auto add = [&](const std::string& more) {
    if (!text.empty()) text += "; ";
    text += more;
  };
  if (!map_condition_.empty()) add(map_condition_);
  // While no node is known, those are named that were asked.
  for (const auto& link : links_) {
    const bool counts = data_.empty() || node_at(link->address()) != nullptr;
    if (!counts || link->condition().empty() || text.size() > 1000) continue;
    add(fmt::format("{}: {}", link->address().shown(), link->condition()));
  }
  return text;
}

void NodeSet::move() {
  for (const auto& link : links_) {
    const bool was_on = link->is_on();
    link->move();
    if (link->is_stalled()) link->give_up("no reply in time, several times in a row");
    if (was_on && !link->is_on()) doubt_map();
  }
  if (!asks_for_maps()) return;
  if (next_map_) follow(*std::exchange(next_map_, std::nullopt));
  drop_strangers();
  if (asked_ != nullptr && clock_.now_ns() > asked_ns_ + options_.connect_timeout_ns) {
    asked_->count_timeout();
    asked_ = nullptr;
  }
  // Whoever knew the nodes may be gone with them.
  const bool none_on =
      std::none_of(links_.begin(), links_.end(), [](const auto& link) { return link->is_on(); });
  if (none_on) add_first_links();
  if (clock_.now_ns() >= map_due_ns()) ask_for_map();
}

std::int64_t NodeSet::map_due_ns() const {
  if (!asks_for_maps() || asked_ != nullptr) return kNever;
  const bool is_known = std::any_of(links_.begin(), links_.end(),
                                    [this](const auto& link) { return knows_map(*link); });
  if (!is_known) return kNever;
  if (asked_ns_ == 0) return 0;
  if (in_doubt_) return asked_ns_ + kMapPauseNs;
  return asked_ns_ + (nodes_on() < data_.size() ? kMapPauseOffNs : kMapPauseWellNs);
}

bool NodeSet::knows_map(const NodeLink& link) const {
  if (!link.is_on()) return false;
  // A sentinel knows no pages, and a single server no map.
  return is_cluster() || std::find(data_.begin(), data_.end(), &link) == data_.end();
}

void NodeSet::ask_for_map() {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    NodeLink& link = *links_[turn_++ % links_.size()];
    if (!knows_map(link)) continue;
    in_doubt_ = false;
    asked_ = &link;
    asked_ns_ = clock_.now_ns();
    const Command command = is_cluster()
                                ? Command{.verb = Verb::kSlots}
                                : Command{.verb = Verb::kPrimary, .key = options_.url.service};
    link.connection().send(command, 0, [this, &link, question = ++question_](const Reply& reply) {
      if (question == question_) take_map_reply(link, reply);
    });
    return;
  }
}

void NodeSet::take_map_reply(const NodeLink& link, const Reply& reply) {
  asked_ = nullptr;
  if (reply.kind == ReplyKind::kLost) return doubt_map();
  const auto& first = options_.url.addresses;
  Result<ClusterMap> map = is_cluster() ? read_cluster_slots(reply, link.address())
                                        : read_sentinel_reply(reply, options_.url.service);
  const bool names_sentinel =
      map.ok() && !is_cluster() &&
      std::find(first.begin(), first.end(), map.value().nodes.front()) != first.end();
  if (names_sentinel) map = Error{ErrorCode::kCorrupt, "it names a sentinel as the server"};
  if (!map.ok()) {
    map_condition_ = fmt::format("{}: {}", link.address().shown(), map.error().message);
    return doubt_map();  // another node may know better
  }
  map_condition_.clear();
  next_map_ = std::move(map).value();
}

void NodeSet::follow(const ClusterMap& map) {
  std::vector<NodeLink*> nodes;
  nodes.reserve(map.nodes.size());
  for (const NodeAddress& address : map.nodes) {
    NodeLink* const link = link_to(address);
    nodes.push_back(link != nullptr ? link : &add_link(address, NodeLink::Role::kServer));
  }
  data_ = nodes;
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const std::uint16_t owner = map.owner[slot];
    owners_[slot] = owner == ClusterMap::kNobody ? nullptr : nodes[owner];
  }
}

// Links to nodes that keep nothing any more go once they owe no reply; sentinels stay, and so does
// everybody until there is a map.
void NodeSet::drop_strangers() {
  if (data_.empty() || links_.size() == data_.size()) return;
  const bool keeps_first = options_.url.layout == RemoteLayout::kSentinel || nodes_on() == 0;
  const auto& first = options_.url.addresses;
  std::erase_if(links_, [&](const std::unique_ptr<NodeLink>& link) {
    if (std::find(data_.begin(), data_.end(), link.get()) != data_.end()) return false;
    if (keeps_first && std::find(first.begin(), first.end(), link->address()) != first.end()) {
      return false;
    }
    return !link->is_busy() && link.get() != asked_;
  });
}

std::int64_t NodeSet::next_due_ns() const {
  std::int64_t due_ns = map_due_ns();
  if (asked_ != nullptr) due_ns = asked_ns_ + options_.connect_timeout_ns;
  for (const auto& link : links_) due_ns = std::min(due_ns, link->next_due_ns());
  return due_ns;
}

}  // namespace pagoda::store
