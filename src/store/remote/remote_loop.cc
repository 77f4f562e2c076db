#include "store/remote/remote_loop.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "store/remote/page_removal.h"

namespace pagoda::store {
namespace {

// How long a key that was seen counts as being there.
constexpr std::int64_t kKnownForMaxNs = 600'000'000'000;

std::int64_t known_for_ns(const RemoteOptions& options) {
  return std::min(std::int64_t{options.ttl_s} * 1'000'000'000 / 2, kKnownForMaxNs);
}

// OpenSSL writes to sockets without MSG_NOSIGNAL.
void ignore_broken_pipes() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

Result<std::unique_ptr<RemoteLoop>> RemoteLoop::start(const RemoteOptions& options) {
  RETURN_IF_ERROR(make_protocol(options.url, options.item_bytes_max));
  if (options.ttl_s == 0) {
    return Error{ErrorCode::kInvalidArgument, "remote store: a time to live of 0 s keeps nothing"};
  }
  std::optional<PageCipher> cipher;
  if (!options.key_file.empty()) {
    ASSIGN_OR_RETURN(const SecretKey key, read_key_file(options.key_file));
    cipher.emplace(key);
  }
  std::optional<net::TlsClient> tls;
  if (options.url.tls) {
    ASSIGN_OR_RETURN(tls, net::TlsClient::load({.ca_file = options.tls_ca_file,
                                                .certificate = options.tls_certificate_file,
                                                .key = options.tls_key_file}));
  }
  std::unique_ptr<RemoteLoop> loop(new RemoteLoop(options, cipher, std::move(tls)));
  loop->thread_ = std::thread([loop = loop.get()] { loop->run(); });
  return loop;
}

RemoteLoop::RemoteLoop(const RemoteOptions& options, const std::optional<PageCipher>& cipher,
                       std::optional<net::TlsClient> tls)
    : options_(options),
      cipher_(cipher),
      tls_(std::move(tls)),
      known_(options.keys_known_max, known_for_ns(options)),
      mailbox_(options_),
      pipeline_(options_, cipher_ ? &*cipher_ : nullptr, known_, clock_,
                [this](const StoreRequest& request) { mailbox_.report(request); }) {}

RemoteLoop::~RemoteLoop() {
  if (!thread_.joinable()) return;
  mailbox_.stop();
  thread_.join();
}

void RemoteLoop::run() {
  ignore_broken_pipes();
  std::int64_t pause_ns = options_.retry_first_ns;
  while (!mailbox_.is_stopping()) {
    Result<std::unique_ptr<RemoteConnection>> connection = connect();
    if (connection.ok()) {
      const std::uint64_t replies = pipeline_.replies();
      const std::int64_t begin_ns = now_ns();
      mailbox_.turn_on();
      give_up(serve(*connection.value()));
      connection.value()->lose();
      // A server that closes the connection after the handshake counts as unreachable.
      const bool lasted = now_ns() - begin_ns > options_.retry_last_ns;
      if (lasted || pipeline_.replies() != replies) pause_ns = options_.retry_first_ns;
    } else {
      give_up(connection.error().message);
    }
    const std::int64_t until_ns = now_ns() + pause_ns;
    while (!mailbox_.is_stopping() && now_ns() < until_ns) {
      mailbox_.notify_if_due();
      wait(-1, 0, until_ns);
    }
    pause_ns = std::min(2 * pause_ns, options_.retry_last_ns);
  }
}

Result<std::unique_ptr<RemoteConnection>> RemoteLoop::connect() {
  const RemoteUrl& url = options_.url;
  const auto found = net::look_up(url.host, url.port);
  if (!found.ok()) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", url.host, found.error().message)};
  }
  const std::vector<net::Socket::Address>& addresses = found.value();
  const std::int64_t deadline_ns = now_ns() + options_.connect_timeout_ns;
  Error error = {ErrorCode::kIo, "it has no address"};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // One that swallows packets leaves the others their share.
    const auto left = static_cast<std::int64_t>(addresses.size() - i);
    const std::int64_t share_ns = (deadline_ns - now_ns()) / left;
    Result<std::unique_ptr<RemoteConnection>> connection =
        connect_to(addresses[i], now_ns() + share_ns);
    if (connection.ok()) return connection;
    error = connection.error();
  }
  return error;
}

Result<std::unique_ptr<RemoteConnection>> RemoteLoop::connect_to(
    const net::Socket::Address& address, std::int64_t deadline_ns) {
  ASSIGN_OR_RETURN(net::Socket socket,
                   net::Socket::connect(address, options_.url.host, tls_ ? &*tls_ : nullptr));
  while (true) {
    ASSIGN_OR_RETURN(const bool established, socket.establish());
    if (established) break;
    if (now_ns() >= deadline_ns || mailbox_.is_stopping()) {
      return Error{ErrorCode::kIo, "no connection in time"};
    }
    mailbox_.notify_if_due();
    wait(socket.descriptor(), socket.events(), deadline_ns);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Protocol> protocol,
                   make_protocol(options_.url, options_.item_bytes_max));
  auto connection = std::make_unique<RemoteConnection>(std::move(socket), std::move(protocol));
  RETURN_IF_ERROR(handshake(*connection, deadline_ns));
  return connection;
}

Status RemoteLoop::handshake(RemoteConnection& connection, std::int64_t deadline_ns) {
  connection.begin_handshake();
  while (true) {
    Status moved = connection.move();
    if (!connection.handshake_status().ok())
      return connection.handshake_status();  // says more than a lost connection
    if (!moved.ok()) return moved;
    if (connection.commands_in_flight() == 0) return ok_status();
    if (now_ns() >= deadline_ns || mailbox_.is_stopping()) {
      return Error{ErrorCode::kIo, "no reply to the handshake in time"};
    }
    mailbox_.notify_if_due();
    wait(connection.descriptor(), connection.events(), deadline_ns);
  }
}

std::string RemoteLoop::serve(RemoteConnection& connection) {
  while (!mailbox_.is_stopping()) {
    take_inbox(mailbox_.take());
    pipeline_.expire();
    if (pipeline_.is_stalled()) return "no reply in time, several times in a row";
    pipeline_.launch(connection);
    const Status moved = connection.move();
    mailbox_.notify_if_due();
    if (!moved.ok()) return moved.error().message;
    pipeline_.launch(connection);
    begin_jobs(connection);
    if (!connection.has_more()) {
      mailbox_.notify_if_due();  // what ended as soon as it was launched
      wait(connection.descriptor(), connection.events(), pipeline_.next_deadline_ns());
    }
  }
  return "the store is closing";
}

void RemoteLoop::take_inbox(RemoteMailbox::Inbox inbox) {
  for (StoreRequest& request : inbox.requests) pipeline_.take(std::move(request));
  if (!inbox.cancelled.empty()) pipeline_.cancel(inbox.cancelled);
  jobs_.insert(jobs_.end(), inbox.jobs.begin(), inbox.jobs.end());
}

void RemoteLoop::begin_jobs(RemoteConnection& connection) {
  const std::uint64_t first_write = pipeline_.first_write();
  const auto ready = std::stable_partition(
      jobs_.begin(), jobs_.end(),
      [&](const std::shared_ptr<Job>& job) { return job->number > first_write; });
  const std::vector<std::shared_ptr<Job>> begun(ready, jobs_.end());
  jobs_.erase(ready, jobs_.end());
  for (const std::shared_ptr<Job>& job : begun) {
    if (job->kind == Job::Kind::kFlush) {
      mailbox_.end(job, kv::Removal{});
      continue;
    }
    const bool all = job->kind == Job::Kind::kRemoveAll;
    const auto owner = all ? std::nullopt : std::optional(job->owner);
    known_.clear();
    const auto removal = std::make_shared<PageRemoval>(owner, options_.ttl_s,
                                                       [this, job](Result<kv::Removal> result) {
                                                         known_.clear();
                                                         mailbox_.end(job, std::move(result));
                                                       });
    removal->start(connection);
  }
}

void RemoteLoop::give_up(const std::string& condition) {
  take_inbox(mailbox_.turn_off(condition));
  pipeline_.abandon();
  const Error error = {ErrorCode::kIo, fmt::format("{}: {}", options_.url.shown(), condition)};
  for (const auto& job : std::exchange(jobs_, {})) mailbox_.end(job, error);
  mailbox_.notify_if_due();
}

void RemoteLoop::wait(int descriptor, short events, std::int64_t until_ns) {
  std::array<pollfd, 2> sources = {
      {{mailbox_.wakeup().descriptor(), POLLIN, 0}, {descriptor, events, 0}}};
  int timeout_ms = -1;
  if (until_ns != kNever) {
    const std::int64_t left_ms = (until_ns - now_ns()) / 1'000'000 + 1;
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 60'000));
  }
  ::poll(sources.data(), descriptor < 0 ? 1 : 2, timeout_ms);
  mailbox_.wakeup().clear();
}

}  // namespace pagoda::store
