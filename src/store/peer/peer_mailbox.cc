#include "store/peer/peer_mailbox.h"

#include <utility>

#include "base/clock.h"

namespace pagoda::store {

using kv::StoreFault;

PeerMailbox::PeerMailbox(std::size_t reads_queued_max, std::size_t hashes_max)
    : reads_queued_max_(reads_queued_max), origins_(hashes_max) {
  stats_.is_on = false;
  stats_.is_ready = false;
}

void PeerMailbox::expect(std::span<const kv::BlockHash> hashes, const NamedOrigin& origin) {
  const std::lock_guard lock(mutex_);
  for (const kv::BlockHash& hash : hashes) {
    if (NamedOrigin* const known = origins_.find(hash)) {
      *known = origin;
    } else {
      origins_.put(hash, origin);
    }
  }
}

// The last key of a prompt is its alone. The first may be that of many: they are there, too, but
// the prompt that this server was named for is not the one that they would wait for.
std::optional<NamedOrigin> PeerMailbox::origin_of(const PeerLookup& lookup) {
  const auto known = [&](const kv::PageKey& key) {
    const NamedOrigin* const origin = origins_.find(key.hash);
    const bool counts = origin != nullptr && origin->known_until_ns >= lookup.begun_ns;
    return counts ? std::optional(*origin) : std::nullopt;
  };
  if (const auto own = known(lookup.keys.back())) return own;
  std::optional<NamedOrigin> shared = known(lookup.keys.front());
  if (shared) shared->wait_until_ns = 0;
  return shared;
}

bool PeerMailbox::put_lookup(PeerLookup lookup) {
  {
    const std::lock_guard lock(mutex_);
    lookup.origin = origin_of(lookup);
    if (!has_peer_ && !lookup.origin) return false;
    inbox_.lookups.push_back(std::move(lookup));
  }
  wakeup_.notify();
  return true;
}

void PeerMailbox::put_read(PeerRead read) {
  {
    const std::lock_guard lock(mutex_);
    if (stats_.requests_queued < reads_queued_max_) {
      ++stats_.requests_queued;
      inbox_.reads.push_back(std::move(read));
    } else {
      ++stats_.faults[static_cast<std::size_t>(StoreFault::kNoRoom)];
      reports_.push_back({read.ticket, StoreFault::kNoRoom, 0, SteadyClock().now_ns()});
      is_notify_due_ = true;
    }
  }
  wakeup_.notify();
}

void PeerMailbox::cancel(std::span<const kv::StoreTicket> tickets) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.cancelled.insert(inbox_.cancelled.end(), tickets.begin(), tickets.end());
  }
  wakeup_.notify();
}

void PeerMailbox::poll(std::vector<kv::StoreReport>& reports) {
  const std::lock_guard lock(mutex_);
  reports.insert(reports.end(), reports_.begin(), reports_.end());
  reports_.clear();
}

void PeerMailbox::on_report(std::function<void()> notify) {
  const std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
}

void PeerMailbox::set_deployment(const DeploymentId& deployment) {
  const std::lock_guard lock(mutex_);
  inbox_.deployment = deployment;
}

kv::StoreStats PeerMailbox::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::vector<std::string> PeerMailbox::peers_shown() const {
  const std::lock_guard lock(mutex_);
  return peers_;
}

void PeerMailbox::stop() {
  {
    const std::lock_guard lock(mutex_);
    inbox_.is_stopping = true;
  }
  wakeup_.notify();
}

PeerMailbox::Inbox PeerMailbox::take() {
  const std::lock_guard lock(mutex_);
  Inbox fresh;
  fresh.deployment = inbox_.deployment;
  fresh.is_stopping = inbox_.is_stopping;
  return std::exchange(inbox_, std::move(fresh));
}

void PeerMailbox::report_lookup(const PeerLookup& lookup, StoreFault fault,
                                std::size_t keys_found) {
  const std::lock_guard lock(mutex_);
  if (fault != StoreFault::kNone) ++stats_.faults[static_cast<std::size_t>(fault)];
  reports_.push_back({lookup.ticket, fault, keys_found, SteadyClock().now_ns()});
  is_notify_due_ = true;
}

void PeerMailbox::report_read(const PeerRead& read, StoreFault fault) {
  const std::lock_guard lock(mutex_);
  --stats_.requests_queued;
  reports_.push_back({read.ticket, fault, 0, SteadyClock().now_ns()});
  is_notify_due_ = true;
  if (fault == StoreFault::kNone) {
    ++stats_.pages_read;
    stats_.bytes_read += read.into.size();
  } else {
    ++stats_.faults[static_cast<std::size_t>(fault)];
  }
}

void PeerMailbox::end_waiting(std::span<const kv::PageKey> keys) {
  const std::lock_guard lock(mutex_);
  for (const kv::PageKey& key : keys) {
    if (NamedOrigin* const origin = origins_.find(key.hash)) origin->wait_until_ns = 0;
  }
}

void PeerMailbox::show(std::vector<std::string> peers, std::size_t on, bool is_ready,
                       const std::string& condition) {
  const std::lock_guard lock(mutex_);
  stats_.nodes = peers.size();
  stats_.nodes_on = on;
  has_peer_ = on > 0;
  stats_.is_on = has_peer_ || peers.empty();  // servers that requests name are no trouble
  stats_.is_ready = is_ready;
  stats_.condition = condition;
  peers_ = std::move(peers);
}

void PeerMailbox::notify_if_due() {
  std::function<void()> notify;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(is_notify_due_, false)) return;
    notify = notify_;
  }
  if (notify) notify();
}

}  // namespace pagoda::store
