#include "kv/session_table.h"

#include <algorithm>
#include <iterator>
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

BranchRef SessionTable::open(const Opening& opening,
                             const std::function<bool(NodeId)>& may_supersede) {
  if (!enabled()) return {};
  if (opening.key.empty()) {
    if (!sessions_.empty() || nodes_superseded() > 0) note_found(opening, kNobody);
    return {};
  }
  const bool is_open = is_live(opening.before);
  const Sessions::iterator session = find_or_open(opening.salt, opening.key, opening.now_ns);
  const std::optional<std::uint32_t> known =
      is_open ? opening.before.number : branch_gone_on(*session, opening);
  const std::uint32_t branch = known ? *known : begin_branch(session);
  std::erase(session->branches, branch);
  session->branches.push_back(branch);
  note_found(opening, branch);
  if (known && !is_open) supersede(branch, may_supersede);
  ++branches_[branch].holders;
  return {branch, branches_[branch].id};
}

void SessionTable::hold(const BranchRef& branch) {
  if (is_live(branch)) ++branches_[branch.number].holders;
}

void SessionTable::release(const BranchRef& branch, std::int64_t now_ns) {
  if (!is_live(branch)) return;
  --branches_[branch.number].holders;
  use(branches_[branch.number].session, now_ns);
}

void SessionTable::use(Sessions::iterator session, std::int64_t now_ns) {
  session->used_ns = now_ns;
  sessions_.splice(sessions_.end(), sessions_, session);
}

SessionTable::Sessions::iterator SessionTable::find_or_open(SaltId salt, std::string_view key,
                                                            std::int64_t now_ns) {
  const std::string name = name_of(salt, key);
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) {
    use(known->second, now_ns);
    return known->second;
  }
  make_room_for(salt);
  salts_.hold(salt);
  sessions_.push_back(
      {.salt = salt, .key = std::string(key.substr(0, kKeyBytesMax)), .used_ns = now_ns});
  by_name_.emplace(name, std::prev(sessions_.end()));
  return std::prev(sessions_.end());
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

void SessionTable::forget(OwnerId owner) {
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    const auto next = std::next(session);
    if (session->salt != kPublic && salts_.owner(session->salt) == owner) forget(session);
    session = next;
  }
}

void SessionTable::forget_all() {
  while (!sessions_.empty()) forget(sessions_.begin());
}

// The branch of the deepest node that the request finds, if its conversation goes beyond the first
// turn there.
std::optional<std::uint32_t> SessionTable::branch_gone_on(const Session& session,
                                                          const Opening& opening) const {
  const auto is_own = [&](NodeId node) {
    const std::uint32_t owner = links_[node.value()].owner;
    if (owner >= branches_.size() || branches_[owner].is_closed) return false;
    return &*branches_[owner].session == &session;
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

std::uint32_t SessionTable::begin_branch(Sessions::iterator session) {
  if (session->branches.size() >= kBranchesMax) {
    forget_branch(session->branches.front());
    session->branches.erase(session->branches.begin());
  }
  const std::uint32_t branch = new_branch();
  branches_[branch].session = session;
  return branch;
}

std::uint32_t SessionTable::new_branch() {
  if (branches_unused_.empty()) {
    branches_unused_.push_back(static_cast<std::uint32_t>(branches_.size()));
    branches_.emplace_back();
  }
  const std::uint32_t branch = branches_unused_.back();
  branches_unused_.pop_back();
  branches_[branch] = {.id = ++branch_ids_};
  return branch;
}

void SessionTable::free_branch(std::uint32_t branch) {
  branches_[branch] = {};
  branches_unused_.push_back(branch);
}

void SessionTable::forget_branch(std::uint32_t branch) {
  while (branches_[branch].list.first != kNone) unlink(NodeId(branches_[branch].list.first));
  free_branch(branch);
}

// Its nodes stay in its list; nobody refers to it any more.
void SessionTable::close_branch(std::uint32_t branch) {
  const NodeList list = branches_[branch].list;
  if (list.nodes == 0) return free_branch(branch);
  branches_[branch] = {.id = ++branch_ids_,
                       .list = list,
                       .is_closed = true,
                       .previous_closed = last_closed_,
                       .to_take = list.first};
  (last_closed_ == kNone ? first_closed_ : branches_[last_closed_].next_closed) = branch;
  last_closed_ = branch;
  if (to_take_ == kNone) to_take_ = branch;
  nodes_closed_ += list.nodes;
}

// The last node of a closed branch has left it.
void SessionTable::drop_closed(std::uint32_t branch) {
  const Branch& gone = branches_[branch];
  (gone.previous_closed == kNone ? first_closed_ : branches_[gone.previous_closed].next_closed) =
      gone.next_closed;
  (gone.next_closed == kNone ? last_closed_ : branches_[gone.next_closed].previous_closed) =
      gone.previous_closed;
  if (to_take_ == branch) to_take_ = gone.next_closed;
  free_branch(branch);
}

// The last that were made are the deepest: they go first.
void SessionTable::supersede(std::uint32_t branch,
                             const std::function<bool(NodeId)>& may_supersede) {
  for (std::uint32_t at = branches_[branch].list.last; at != kNone;) {
    const NodeId node(at);
    at = links_[at].previous;
    if (links_[node.value()].found_by == openings_ || !may_supersede(node)) continue;
    unlink(node);
    append(kSuperseded, node);
  }
}

// Nodes of other branches are shared from now on, and what was superseded is of use again.
void SessionTable::note_found(const Opening& opening, std::uint32_t branch) {
  if (++openings_ == 0) ++openings_;
  for (const NodeId node : opening.found) {
    Link& link = links_[node.value()];
    link.found_by = openings_;
    if (link.owner != kNobody && link.owner != branch) unlink(node);
  }
  if (!opening.partial) return;
  const std::uint32_t owner = links_[opening.partial->value()].owner;
  if (owner != kNobody && owner != branch) unlink(*opening.partial);
}

void SessionTable::made(const BranchRef& branch, NodeId node) {
  if (is_live(branch)) append(branch.number, node);
}

std::optional<NodeId> SessionTable::first_superseded() const {
  if (superseded_.first != kNone) return NodeId(superseded_.first);
  if (first_closed_ == kNone) return std::nullopt;
  return NodeId(branches_[first_closed_].list.last);
}

std::optional<std::uint64_t> SessionTable::close(SaltId salt, std::string_view key) {
  const auto known = by_name_.find(name_of(salt, key));
  if (known == by_name_.end()) return std::nullopt;
  return end(known->second);
}

// A session that somebody runs a request of is used now.
bool SessionTable::close_due(std::int64_t now_ns) {
  while (next_due_ns() && *next_due_ns() <= now_ns) {
    const Sessions::iterator oldest = sessions_.begin();
    if (!is_in_use(*oldest)) {
      end(oldest);
      return true;
    }
    use(oldest, now_ns);
  }
  return false;
}

bool SessionTable::is_in_use(const Session& session) const {
  return std::any_of(session.branches.begin(), session.branches.end(),
                     [&](std::uint32_t branch) { return branches_[branch].holders > 0; });
}

std::optional<std::int64_t> SessionTable::next_due_ns() const {
  if (options_.timeout_ns <= 0 || sessions_.empty()) return std::nullopt;
  return sessions_.front().used_ns + options_.timeout_ns;
}

std::uint64_t SessionTable::end(Sessions::iterator session) {
  std::uint64_t nodes = 0;
  for (const std::uint32_t branch : std::exchange(session->branches, {})) {
    nodes += branches_[branch].list.nodes;
    close_branch(branch);
  }
  forget(session);
  return nodes;
}

void SessionTable::close_chain(std::span<const NodeId> nodes) {
  if (!enabled() || nodes.empty()) return;
  const std::uint32_t branch = new_branch();
  for (const NodeId node : nodes) {
    unlink(node);
    append(branch, node);
  }
  close_branch(branch);
}

std::vector<NodeId> SessionTable::take_closed(std::size_t nodes_max) {
  std::vector<NodeId> nodes;
  while (to_take_ != kNone && nodes.size() < nodes_max) {
    std::uint32_t& at = branches_[to_take_].to_take;
    for (; at != kNone && nodes.size() < nodes_max; at = links_[at].next) nodes.emplace_back(at);
    if (at == kNone) to_take_ = branches_[to_take_].next_closed;
  }
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

// The node is nobody's from now on.
void SessionTable::unlink(NodeId node) {
  Link& link = links_[node.value()];
  if (link.owner == kNobody) return;
  const std::uint32_t owner = std::exchange(link.owner, kNobody);
  NodeList& list = list_of(owner);
  (link.previous == kNone ? list.first : links_[link.previous].next) = link.next;
  (link.next == kNone ? list.last : links_[link.next].previous) = link.previous;
  --list.nodes;
  if (owner != kSuperseded && branches_[owner].is_closed) {
    --nodes_closed_;
    Branch& branch = branches_[owner];
    if (branch.to_take == node.value()) branch.to_take = link.next;
    if (branch.to_take == kNone && to_take_ == owner) to_take_ = branch.next_closed;
    if (list.nodes == 0) drop_closed(owner);
  }
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

void SessionTable::check_closed(std::uint64_t& nodes, std::size_t& branches) const {
  std::uint64_t closed = 0;
  std::uint32_t previous = kNone;
  bool is_taken = to_take_ != first_closed_;  // branches before to_take_ are
  for (std::uint32_t at = first_closed_; at != kNone; at = branches_[at].next_closed) {
    const Branch& branch = branches_[at];
    ASSERT(branch.is_closed && branch.list.nodes > 0 && branch.previous_closed == previous,
           "S3: closed branches are a list");
    if (at == to_take_) is_taken = false;
    ASSERT(is_taken == (branch.to_take == kNone), "S3: branches are taken in turn");
    ASSERT(is_taken || links_[branch.to_take].owner == at, "S3: what is taken next is of a branch");
    check_list(at, branch.list);
    closed += branch.list.nodes;
    ++branches;
    previous = at;
  }
  ASSERT(previous == last_closed_ && closed == nodes_closed_, "S3: closed nodes are counted");
  nodes += closed;
}

void SessionTable::check() const {
  check_list(kSuperseded, superseded_);
  std::uint64_t listed = superseded_.nodes;
  std::size_t branches = 0;
  for (auto session = sessions_.begin(); session != sessions_.end(); ++session) {
    ASSERT(session->branches.size() <= kBranchesMax, "S2: branches are bounded");
    const auto known = by_name_.find(name_of(session->salt, session->key));
    ASSERT(known != by_name_.end() && &*known->second == &*session, "S2: every session is found");
    for (const std::uint32_t branch : session->branches) {
      ASSERT(&*branches_[branch].session == &*session && !branches_[branch].is_closed,
             "S2: a branch is of its session");
      check_list(branch, branches_[branch].list);
      listed += branches_[branch].list.nodes;
      ++branches;
    }
  }
  check_closed(listed, branches);
  ASSERT(sessions_.size() == by_name_.size() && sessions_.size() <= kSessionsMax,
         "S2: sessions are bounded");
  ASSERT(branches + branches_unused_.size() == branches_.size(), "S2: every branch is somebody's");
  const auto owned = std::count_if(links_.begin(), links_.end(),
                                   [](const Link& link) { return link.owner != kNobody; });
  ASSERT(listed == static_cast<std::uint64_t>(owned), "S1: every node is in its list");
}

}  // namespace pagoda::kv
