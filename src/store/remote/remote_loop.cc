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
  RETURN_IF_ERROR(make_dialect(options.url, options.item_bytes_max));
  if (options.ttl_s == 0) {
    return Error{ErrorCode::kInvalidArgument, "remote store: a time to live of 0 s keeps nothing"};
  }
  std::optional<PageCipher> cipher;
  if (!options.key_file.empty()) {
    ASSIGN_OR_RETURN(const SecretKey key, read_key_file(options.key_file));
    cipher.emplace(key);
  }
  std::optional<TlsClient> tls;
  if (options.url.tls) {
    ASSIGN_OR_RETURN(tls, TlsClient::load(options));
  }
  std::unique_ptr<RemoteLoop> loop(new RemoteLoop(options, cipher, std::move(tls)));
  loop->thread_ = std::thread([loop = loop.get()] { loop->run(); });
  return loop;
}

RemoteLoop::RemoteLoop(const RemoteOptions& options, const std::optional<PageCipher>& cipher,
                       std::optional<TlsClient> tls)
    : options_(options),
      cipher_(cipher),
      tls_(std::move(tls)),
      known_(options.keys_known_max, known_for_ns(options)),
      desk_(options_),
      courier_(options_, cipher_ ? &*cipher_ : nullptr, known_, clock_,
               [this](const Errand& errand) { desk_.report(errand); }) {}

RemoteLoop::~RemoteLoop() {
  if (!thread_.joinable()) return;
  desk_.stop();
  thread_.join();
}

void RemoteLoop::run() {
  ignore_broken_pipes();
  std::int64_t pause_ns = options_.retry_first_ns;
  while (!desk_.is_stopping()) {
    Result<std::unique_ptr<Exchange>> exchange = connect();
    if (exchange.ok()) {
      const std::uint64_t replies = courier_.replies();
      const std::int64_t begin_ns = now_ns();
      desk_.turn_on();
      give_up(serve(*exchange.value()));
      exchange.value()->lose();
      // One that greets and hangs up is no better than one that is not there.
      const bool lasted = now_ns() - begin_ns > options_.retry_last_ns;
      if (lasted || courier_.replies() != replies) pause_ns = options_.retry_first_ns;
    } else {
      give_up(exchange.error().message);
    }
    const std::int64_t until_ns = now_ns() + pause_ns;
    while (!desk_.is_stopping() && now_ns() < until_ns) {
      desk_.ring_if_due();
      wait(-1, 0, until_ns);
    }
    pause_ns = std::min(2 * pause_ns, options_.retry_last_ns);
  }
}

Result<std::unique_ptr<Exchange>> RemoteLoop::connect() {
  ASSIGN_OR_RETURN(const std::vector<RemoteWire::Address> addresses, look_up(options_.url));
  const std::int64_t deadline_ns = now_ns() + options_.connect_timeout_ns;
  Error error = {ErrorCode::kIo, "it has no address"};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // One that swallows packets leaves the others their share.
    const auto left = static_cast<std::int64_t>(addresses.size() - i);
    const std::int64_t share_ns = (deadline_ns - now_ns()) / left;
    Result<std::unique_ptr<Exchange>> exchange = connect_to(addresses[i], now_ns() + share_ns);
    if (exchange.ok()) return exchange;
    error = exchange.error();
  }
  return error;
}

Result<std::unique_ptr<Exchange>> RemoteLoop::connect_to(const RemoteWire::Address& address,
                                                         std::int64_t deadline_ns) {
  ASSIGN_OR_RETURN(std::unique_ptr<RemoteWire> wire,
                   RemoteWire::open(address, options_.url.host, tls_ ? &*tls_ : nullptr));
  while (true) {
    ASSIGN_OR_RETURN(const bool established, wire->establish());
    if (established) break;
    if (now_ns() >= deadline_ns || desk_.is_stopping()) {
      return Error{ErrorCode::kIo, "no connection in time"};
    }
    desk_.ring_if_due();
    wait(wire->descriptor(), wire->events(), deadline_ns);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Dialect> dialect,
                   make_dialect(options_.url, options_.item_bytes_max));
  auto exchange = std::make_unique<Exchange>(std::move(wire), std::move(dialect));
  RETURN_IF_ERROR(greet(*exchange, deadline_ns));
  return exchange;
}

Status RemoteLoop::greet(Exchange& exchange, std::int64_t deadline_ns) {
  exchange.greet();
  while (true) {
    Status moved = exchange.move();
    if (!exchange.greeting().ok()) return exchange.greeting();  // says more than a lost connection
    if (!moved.ok()) return moved;
    if (exchange.commands_in_flight() == 0) return ok_status();
    if (now_ns() >= deadline_ns || desk_.is_stopping()) {
      return Error{ErrorCode::kIo, "no answer to a greeting in time"};
    }
    desk_.ring_if_due();
    wait(exchange.descriptor(), exchange.events(), deadline_ns);
  }
}

std::string RemoteLoop::serve(Exchange& exchange) {
  while (!desk_.is_stopping()) {
    take_inbox(desk_.take());
    courier_.expire();
    if (courier_.is_stalled()) return "no answer in time, several times in a row";
    courier_.launch(exchange);
    const Status moved = exchange.move();
    desk_.ring_if_due();
    if (!moved.ok()) return moved.error().message;
    courier_.launch(exchange);
    begin_jobs(exchange);
    if (!exchange.has_more()) {
      desk_.ring_if_due();  // what ended as soon as it was launched
      wait(exchange.descriptor(), exchange.events(), courier_.next_deadline_ns());
    }
  }
  return "the store is closing";
}

void RemoteLoop::take_inbox(RemoteDesk::Inbox inbox) {
  for (Errand& errand : inbox.errands) courier_.take(std::move(errand));
  if (!inbox.cancelled.empty()) courier_.cancel(inbox.cancelled);
  jobs_.insert(jobs_.end(), inbox.jobs.begin(), inbox.jobs.end());
}

void RemoteLoop::begin_jobs(Exchange& exchange) {
  const std::uint64_t first_write = courier_.first_write();
  const auto ready = std::stable_partition(
      jobs_.begin(), jobs_.end(),
      [&](const std::shared_ptr<Job>& job) { return job->number > first_write; });
  const std::vector<std::shared_ptr<Job>> begun(ready, jobs_.end());
  jobs_.erase(ready, jobs_.end());
  for (const std::shared_ptr<Job>& job : begun) {
    if (job->kind == Job::Kind::kFlush) {
      desk_.end(job, kv::Removal{});
      continue;
    }
    const bool all = job->kind == Job::Kind::kRemoveAll;
    const auto owner = all ? std::nullopt : std::optional(job->owner);
    known_.clear();
    const auto removal = std::make_shared<PageRemoval>(owner, options_.ttl_s,
                                                       [this, job](Result<kv::Removal> result) {
                                                         known_.clear();
                                                         desk_.end(job, std::move(result));
                                                       });
    removal->start(exchange);
  }
}

void RemoteLoop::give_up(const std::string& condition) {
  take_inbox(desk_.turn_off(condition));
  courier_.abandon();
  const Error error = {ErrorCode::kIo, fmt::format("{}: {}", options_.url.shown(), condition)};
  for (const auto& job : std::exchange(jobs_, {})) desk_.end(job, error);
  desk_.ring_if_due();
}

void RemoteLoop::wait(int descriptor, short events, std::int64_t until_ns) {
  std::array<pollfd, 2> sources = {
      {{desk_.wake_bell().descriptor(), POLLIN, 0}, {descriptor, events, 0}}};
  int timeout_ms = -1;
  if (until_ns != kNever) {
    const std::int64_t left_ms = (until_ns - now_ns()) / 1'000'000 + 1;
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 60'000));
  }
  ::poll(sources.data(), descriptor < 0 ? 1 : 2, timeout_ms);
  desk_.wake_bell().hear();
}

}  // namespace pagoda::store
