#include "store/remote/remote_store.h"

#include <utility>

#include "store/remote/remote_loop.h"

namespace pagoda::store {

using kv::StoreFault;

RemoteStore::RemoteStore(std::unique_ptr<RemoteLoop> loop) : loop_(std::move(loop)) {}
RemoteStore::~RemoteStore() = default;

Result<std::unique_ptr<RemoteStore>> RemoteStore::open(const RemoteOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<RemoteLoop> loop, RemoteLoop::start(options));
  return std::unique_ptr<RemoteStore>(new RemoteStore(std::move(loop)));
}

Status RemoteStore::await_connection(std::int64_t timeout_ns) {
  return loop_->mailbox().await_on(timeout_ns);
}

std::string_view RemoteStore::name() const {
  return loop_->options().url.kind == RemoteKind::kRedis ? "redis" : "memcached";
}

std::optional<std::size_t> RemoteStore::find(kv::StoreTicket ticket,
                                             std::span<const kv::PageKey> keys) {
  if (keys.empty()) return 0;
  const bool asked = loop_->mailbox().put({.kind = RequestKind::kLookup,
                                           .ticket = ticket,
                                           .deadline_ns = loop_->deadline_ns(),
                                           .keys = {keys.begin(), keys.end()}});
  return asked ? std::nullopt : std::optional<std::size_t>(0);
}

bool RemoteStore::keeps(const kv::PageKey& key) {
  return loop_->known().knows(key, loop_->now_ns());
}

void RemoteStore::read(kv::PageRead read) {
  const kv::StoreTicket ticket = read.ticket;
  const bool taken = loop_->mailbox().put({.kind = RequestKind::kRead,
                                           .ticket = ticket,
                                           .deadline_ns = loop_->deadline_ns(),
                                           .label = std::move(read.label),
                                           .into = read.page});
  if (taken) return;
  const StoreFault fault = loop_->mailbox().is_on() ? StoreFault::kNoRoom : StoreFault::kOff;
  loop_->mailbox().put_report({.ticket = ticket, .fault = fault});
}

bool RemoteStore::write(kv::PageWrite write) {
  return loop_->mailbox().put({.kind = RequestKind::kWrite,
                               .ticket = write.ticket,
                               .deadline_ns = loop_->deadline_ns(),
                               .label = std::move(write.label),
                               .from = write.page});
}

bool RemoteStore::takes_writes() const { return loop_->mailbox().takes_writes(); }

void RemoteStore::cancel(std::span<const kv::StoreTicket> tickets) {
  loop_->mailbox().cancel(tickets);
}

void RemoteStore::poll(std::vector<kv::StoreReport>& reports) { loop_->mailbox().poll(reports); }

void RemoteStore::on_report(std::function<void()> notify) {
  loop_->mailbox().on_report(std::move(notify));
}

Result<kv::Removal> RemoteStore::remove(const kv::OwnerTag& owner) {
  return loop_->mailbox().wait_for({.kind = Job::Kind::kRemove, .owner = owner},
                                   loop_->options().removal_timeout_ns);
}

Result<kv::Removal> RemoteStore::remove_all() {
  return loop_->mailbox().wait_for({.kind = Job::Kind::kRemoveAll},
                                   loop_->options().removal_timeout_ns);
}

Status RemoteStore::flush(std::int64_t timeout_ns) {
  RETURN_IF_ERROR(loop_->mailbox().wait_for({.kind = Job::Kind::kFlush}, timeout_ns));
  return ok_status();
}

kv::StoreStats RemoteStore::stats() const { return loop_->mailbox().stats(); }

}  // namespace pagoda::store
