#include "store/peer/peer_store.h"

#include <utility>

#include "store/peer/peer_loop.h"

namespace pagoda::store {

PeerStore::PeerStore(std::unique_ptr<PeerLoop> loop) : loop_(std::move(loop)) {}
PeerStore::~PeerStore() = default;

Result<std::unique_ptr<PeerStore>> PeerStore::open(PeerStoreOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<PeerLoop> loop, PeerLoop::start(std::move(options)));
  return std::unique_ptr<PeerStore>(new PeerStore(std::move(loop)));
}

bool PeerStore::allows(const std::string& host) const {
  return loop_->options().allowed.allows(host);
}

void PeerStore::set_deployment(const DeploymentId& deployment) {
  loop_->mailbox().set_deployment(deployment);
}

std::vector<std::string> PeerStore::peers_shown() const { return loop_->mailbox().peers_shown(); }

std::int64_t PeerStore::expect(std::span<const kv::BlockHash> hashes,
                               const kv::PageOrigin& origin) {
  if (hashes.empty() || origin.port == 0 || !allows(origin.host)) return 0;
  const std::int64_t wait_ns = loop_->options().wait_ns;
  const std::int64_t until_ns = loop_->now_ns() + wait_ns;
  loop_->mailbox().expect(hashes, {.address = {origin.host, origin.port},
                                   .wait_until_ns = origin.is_computing ? until_ns : 0,
                                   .known_until_ns = until_ns});
  return wait_ns;
}

std::optional<std::size_t> PeerStore::find(kv::StoreTicket ticket,
                                           std::span<const kv::PageKey> keys) {
  if (keys.empty()) return 0;
  const bool is_asked = loop_->mailbox().put_lookup(
      {.ticket = ticket, .keys = {keys.begin(), keys.end()}, .begun_ns = loop_->now_ns()});
  return is_asked ? std::nullopt : std::optional<std::size_t>(0);
}

void PeerStore::read(kv::PageRead read) {
  loop_->mailbox().put_read({.ticket = read.ticket,
                             .label = std::move(read.label),
                             .into = read.page,
                             .deadline_ns = loop_->now_ns() + loop_->options().timeout_ns});
}

void PeerStore::cancel(std::span<const kv::StoreTicket> tickets) {
  loop_->mailbox().cancel(tickets);
}

void PeerStore::poll(std::vector<kv::StoreReport>& reports) { loop_->mailbox().poll(reports); }

void PeerStore::on_report(std::function<void()> notify) {
  loop_->mailbox().on_report(std::move(notify));
}

Result<kv::Removal> PeerStore::remove(const kv::OwnerTag& /*owner*/) {
  return kv::Removal{.note = "other servers remove their own pages"};
}

kv::StoreStats PeerStore::stats() const { return loop_->mailbox().stats(); }

}  // namespace pagoda::store
