#include "store/remote/remote_loop.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "store/remote/store_removal.h"

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
      pipeline_(options_, cipher_ ? &*cipher_ : nullptr, known_, clock_, nodes_,
                [this](const StoreRequest& request) { mailbox_.report(request); }),
      nodes_(options_, tls_ ? &*tls_ : nullptr, clock_) {}

RemoteLoop::~RemoteLoop() {
  if (!thread_.joinable()) return;
  mailbox_.stop();
  thread_.join();
}

void RemoteLoop::run() {
  ignore_broken_pipes();
  while (!mailbox_.is_stopping()) {
    take_inbox(mailbox_.take());
    pipeline_.expire();
    pipeline_.launch();
    nodes_.move();
    mailbox_.notify_if_due();
    pipeline_.launch();
    begin_jobs();
    show_nodes();
    mailbox_.notify_if_due();  // what ended as soon as it was launched
    wait();
  }
  give_up("the store is closing");
}

void RemoteLoop::take_inbox(RemoteMailbox::Inbox inbox) {
  for (StoreRequest& request : inbox.requests) pipeline_.take(std::move(request));
  if (!inbox.cancelled.empty()) pipeline_.cancel(inbox.cancelled);
  jobs_.insert(jobs_.end(), inbox.jobs.begin(), inbox.jobs.end());
}

void RemoteLoop::begin_jobs() {
  const std::uint64_t first_write = pipeline_.first_write();
  const auto ready = std::stable_partition(
      jobs_.begin(), jobs_.end(),
      [&](const std::shared_ptr<Job>& job) { return job->number > first_write; });
  const std::vector<std::shared_ptr<Job>> begun(ready, jobs_.end());
  jobs_.erase(ready, jobs_.end());
  for (const std::shared_ptr<Job>& job : begun) {
    if (job->kind == Job::Kind::kFlush) {
      mailbox_.end(job, kv::Removal{});
    } else {
      begin_removal(job);
    }
  }
}

void RemoteLoop::begin_removal(const std::shared_ptr<Job>& job) {
  const bool all = job->kind == Job::Kind::kRemoveAll;
  const RemovalOrder order = {.owner = all ? std::nullopt : std::optional(job->owner),
                              .ttl_s = options_.ttl_s,
                              .deadline_ns = now_ns() + options_.removal_timeout_ns,
                              .is_cluster = nodes_.is_cluster()};
  known_.clear();
  const auto removal =
      std::make_shared<StoreRemoval>(nodes_, order, [this, job](Result<kv::Removal> result) {
        known_.clear();
        mailbox_.end(job, std::move(result));
      });
  removal->start();
}

// A store goes on once all its nodes were tried, and off with the last of them.
void RemoteLoop::show_nodes() {
  const bool on = is_on_ ? nodes_.nodes_on() > 0 : nodes_.is_ready();
  std::string condition = nodes_.condition();
  mailbox_.show_nodes({.nodes = nodes_.owners().size(),
                       .nodes_on = nodes_.nodes_on(),
                       .redirections = pipeline_.redirections()},
                      condition);
  if (on && !is_on_) mailbox_.turn_on();
  const bool is_news = is_on_ || condition != condition_;
  is_on_ = on;
  condition_ = std::move(condition);
  if (!on && is_news) give_up(condition_);
}

void RemoteLoop::give_up(const std::string& condition) {
  take_inbox(mailbox_.turn_off(condition));
  pipeline_.abandon();
  const Error error = {ErrorCode::kIo, fmt::format("{}: {}", options_.url.shown(), condition)};
  for (const auto& job : std::exchange(jobs_, {})) mailbox_.end(job, error);
  mailbox_.notify_if_due();
}

void RemoteLoop::wait() {
  std::int64_t until_ns = std::min(pipeline_.next_deadline_ns(), nodes_.next_due_ns());
  sources_.assign({{mailbox_.wakeup().descriptor(), POLLIN, 0}});
  for (const auto& link : nodes_.links()) {
    if (link->has_more()) until_ns = 0;
    if (link->descriptor() >= 0) sources_.push_back({link->descriptor(), link->events(), 0});
  }
  int timeout_ms = -1;
  if (until_ns != kNever) {
    const std::int64_t left_ms = until_ns == 0 ? 0 : (until_ns - now_ns()) / 1'000'000 + 1;
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 60'000));
  }
  ::poll(sources_.data(), sources_.size(), timeout_ms);
  mailbox_.wakeup().clear();
}

}  // namespace pagoda::store
