#include "kv/session_table.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace pagoda::kv {

SessionTable::SessionTable(const Options& options, SaltTable& salts)
    : options_(options), salts_(salts) {
  if (enabled()) links_.reserve(options.nodes);
}

void SessionTable::node_added(NodeId node) {
  if (!enabled()) return;
  if (node.value() >= links_.size()) links_.resize(node.value() + 1);
  links_[node.value()] = {};
}

std::string SessionTable::name_of(SaltId salt, std::string_view key) {
  return std::to_string(salt.value()) + ' ' + std::string(key.substr(0, kKeyBytesMax));
}

BranchRef SessionTable::open(const Opening& opening, const std::function<bool(NodeId)>& is_idle) {
  if (!enabled()) return {};
  if (opening.key.empty()) {
    if (!sessions_.empty() || superseded_.nodes > 0) note_found(opening, kNobody);
    return {};
  }
  Session& session = find_or_open(opening.salt, opening.key, opening.now_ns);
  const std::optional<std::uint32_t> known = branch_gone_on(session, opening);
  const std::uint32_t branch = known ? *known : begin_branch(session);
  std::erase(session.branches, branch);
  session.branches.push_back(branch);
  note_found(opening, branch);
  if (known) supersede(branch, is_idle);
  return {branch, branches_[branch].id};
}

SessionTable::Session& SessionTable::find_or_open(SaltId salt, std::string_view key,
                                                  std::int64_t now_ns) {
  const std::string name = name_of(salt, key);
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) {
    sessions_.splice(sessions_.end(), sessions_, known->second);
    known->second->used_ns = now_ns;
    return *known->second;
  }
  make_room_for(salt);
  salts_.hold(salt);
  sessions_.push_back(
      {.salt = salt, .key = std::string(key.substr(0, kKeyBytesMax)), .used_ns = now_ns});
  by_name_.emplace(name, std::prev(sessions_.end()));
  return sessions_.back();
}

// A client that invents keys pushes out its own sessions first.
void SessionTable::make_room_for(SaltId salt) {
  const AccountId account = salts_.account(salt);
  std::size_t of_account = 0;
  auto oldest = sessions_.end();
  for (auto session = sessions_.begin(); session != sessions_.end(); ++session) {
    if (salts_.account(session->salt) != account) continue;
    if (of_account++ == 0) oldest = session;
  }
  if (of_account >= kSessionsAccountMax) {
    forget(oldest);
  } else if (sessions_.size() >= kSessionsMax) {
    forget(sessions_.begin());
  }
}

// Its nodes are nobody's and keep their rank.
void SessionTable::forget(Sessions::iterator session) {
  for (const std::uint32_t branch : session->branches) forget_branch(branch);
  by_name_.erase(name_of(session->salt, session->key));
  salts_.release(session->salt);
  sessions_.erase(session);
}

// The branch of the deepest node that the request finds, if its conversation goes beyond the first
// turn there.
std::optional<std::uint32_t> SessionTable::branch_gone_on(const Session& session,
                                                          const Opening& opening) const {
  const auto is_own = [&](NodeId node) {
    const std::uint32_t owner = links_[node.value()].owner;
    return owner < branches_.size() && branches_[owner].session == &session;
  };
  if (opening.partial && is_own(*opening.partial)) {
    if (opening.tokens_found <= opening.first_turn_tokens) return std::nullopt;
    return links_[opening.partial->value()].owner;
  }
  for (std::size_t i = opening.found.size(); i-- > 0;) {
    if ((i + 1) * opening.block_tokens <= opening.first_turn_tokens) return std::nullopt;
    if (is_own(opening.found[i])) return links_[opening.found[i].value()].owner;
  }
  return std::nullopt;
}

std::uint32_t SessionTable::begin_branch(Session& session) {
  if (session.branches.size() >= kBranchesMax) {
    forget_branch(session.branches.front());
    session.branches.erase(session.branches.begin());
  }
  if (branches_unused_.empty()) {
    branches_unused_.push_back(static_cast<std::uint32_t>(branches_.size()));
    branches_.emplace_back();
  }
  const std::uint32_t branch = branches_unused_.back();
  branches_unused_.pop_back();
  branches_[branch] = {.id = ++branch_ids_, .list = {}, .session = &session};
  return branch;
}

void SessionTable::forget_branch(std::uint32_t branch) {
  while (branches_[branch].list.first != kNone) {
    unlink(NodeId(branches_[branch].list.first), kNobody);
  }
  branches_[branch] = {};
  branches_unused_.push_back(branch);
}

// The last that were made are the deepest: they go first.
void SessionTable::supersede(std::uint32_t branch, const std::function<bool(NodeId)>& is_idle) {
  for (std::uint32_t at = branches_[branch].list.last; at != kNone;) {
    const NodeId node(at);
    at = links_[at].previous;
    if (links_[node.value()].found_by == openings_ || !is_idle(node)) continue;
    unlink(node, kNobody);
    append(kSuperseded, node);
  }
}

// Nodes of other branches are shared from now on, and what was superseded is of use again.
void SessionTable::note_found(const Opening& opening, std::uint32_t branch) {
  if (++openings_ == 0) ++openings_;
  for (const NodeId node : opening.found) {
    Link& link = links_[node.value()];
    link.found_by = openings_;
    if (link.owner != kNobody && link.owner != branch) unlink(node, kNobody);
  }
  if (!opening.partial) return;
  const std::uint32_t owner = links_[opening.partial->value()].owner;
  if (owner != kNobody && owner != branch) unlink(*opening.partial, kNobody);
}

void SessionTable::made(const BranchRef& branch, NodeId node) {
  if (is_live(branch)) append(branch.number, node);
}

void SessionTable::supersede(std::span<const NodeId> nodes) {
  for (const NodeId node : nodes) {
    unlink(node, kNobody);
    append(kSuperseded, node);
  }
}

std::optional<NodeId> SessionTable::first_superseded() const {
  if (superseded_.first == kNone) return std::nullopt;
  return NodeId(superseded_.first);
}

std::optional<std::vector<NodeId>> SessionTable::close(
    SaltId salt, std::string_view key, const std::function<std::uint32_t(NodeId)>& depth) {
  const auto known = by_name_.find(name_of(salt, key));
  if (known == by_name_.end()) return std::nullopt;
  return end(known->second, depth);
}

bool SessionTable::is_due(std::int64_t now_ns) const {
  return options_.timeout_ns > 0 && !sessions_.empty() &&
         now_ns - sessions_.front().used_ns >= options_.timeout_ns;
}

std::optional<std::vector<NodeId>> SessionTable::close_due(
    std::int64_t now_ns, const std::function<std::uint32_t(NodeId)>& depth) {
  if (!is_due(now_ns)) return std::nullopt;
  return end(sessions_.begin(), depth);
}

std::vector<NodeId> SessionTable::end(Sessions::iterator session,
                                      const std::function<std::uint32_t(NodeId)>& depth) {
  std::vector<NodeId> nodes;
  for (const std::uint32_t branch : session->branches) {
    for (std::uint32_t at = branches_[branch].list.first; at != kNone; at = links_[at].next) {
      nodes.emplace_back(at);
    }
  }
  forget(session);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [&](NodeId a, NodeId b) { return depth(a) > depth(b); });
  for (const NodeId node : nodes) append(kSuperseded, node);
  return nodes;
}

void SessionTable::append(std::uint32_t owner, NodeId node) {
  NodeList& list = list_of(owner);
  Link& link = links_[node.value()];
  link.owner = owner;
  link.next = kNone;
  link.previous = list.last;
  (list.last == kNone ? list.first : links_[list.last].next) = node.value();
  list.last = node.value();
  ++list.nodes;
}

void SessionTable::unlink(NodeId node, std::uint32_t owner_after) {
  Link& link = links_[node.value()];
  if (link.owner == kNobody) return;
  NodeList& list = list_of(link.owner);
  (link.previous == kNone ? list.first : links_[link.previous].next) = link.next;
  (link.next == kNone ? list.last : links_[link.next].previous) = link.previous;
  --list.nodes;
  link.owner = owner_after;
  link.next = link.previous = kNone;
}

void SessionTable::check_list(std::uint32_t owner, const NodeList& list) const {
  std::uint64_t nodes = 0;
  std::uint32_t previous = kNone;
  for (std::uint32_t at = list.first; at != kNone; at = links_[at].next) {
    ASSERT(links_[at].owner == owner && links_[at].previous == previous,
           "S1: the nodes of a branch are a list");
    previous = at;
    ++nodes;
  }
  ASSERT(previous == list.last && nodes == list.nodes, "S1: the list's end and count are true");
}

void SessionTable::check() const {
  check_list(kSuperseded, superseded_);
  std::uint64_t listed = superseded_.nodes;
  std::size_t branches = 0;
  for (const Session& session : sessions_) {
    ASSERT(session.branches.size() <= kBranchesMax, "S2: branches are bounded");
    const auto known = by_name_.find(name_of(session.salt, session.key));
    ASSERT(known != by_name_.end() && &*known->second == &session, "S2: every session is found");
    for (const std::uint32_t branch : session.branches) {
      ASSERT(branches_[branch].session == &session, "S2: a branch is of its session");
      check_list(branch, branches_[branch].list);
      listed += branches_[branch].list.nodes;
      ++branches;
    }
  }
  ASSERT(sessions_.size() == by_name_.size() && sessions_.size() <= kSessionsMax,
         "S2: sessions are bounded");
  ASSERT(branches + branches_unused_.size() == branches_.size(), "S2: every branch is somebody's");
  const auto owned = std::count_if(links_.begin(), links_.end(),
                                   [](const Link& link) { return link.owner != kNobody; });
  ASSERT(listed == static_cast<std::uint64_t>(owned), "S1: every node is in its list");
}

}  // namespace pagoda::kv
