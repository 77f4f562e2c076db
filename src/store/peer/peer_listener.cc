// The listener's thread, and what others leave for it.
#include "store/peer/peer_listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/event_fd.h"
#include "store/peer/peer_mail.h"

namespace pagoda::store {
namespace {

constexpr int kBacklog = 64;
// So long nobody is accepted once the system had no descriptor to give.
constexpr std::int64_t kAcceptAgainNs = 100'000'000;

std::string last_words() { return std::generic_category().message(errno); }

// OpenSSL writes to sockets without MSG_NOSIGNAL.
void ignore_broken_pipes() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Result<int> bind_socket(const PeerAddress& wanted) {
  const auto addresses = net::look_up(wanted.host, fmt::format("{}", wanted.port));
  std::string why = addresses.ok() ? "it has no address" : addresses.error().message;
  for (std::size_t i = 0; addresses.ok() && i < addresses.value().size(); ++i) {
    const net::Socket::Address& address = addresses.value()[i];
    const auto* const to = reinterpret_cast<const sockaddr*>(address.bytes);
    const int made = ::socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0) {
      why = last_words();
      continue;
    }
    const int on = 1;
    (void)setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(made, to, address.length) == 0 && ::listen(made, kBacklog) == 0) return made;
    why = last_words();
    ::close(made);
  }
  return Error{ErrorCode::kIo, fmt::format("{}: {}", wanted.shown(), why)};
}

std::uint16_t port_of(int socket) {
  net::Socket::Address address = {};
  socklen_t length = sizeof address.bytes;
  auto* const to = reinterpret_cast<sockaddr*>(address.bytes);
  if (::getsockname(socket, to, &length) != 0) return 0;
  const bool is_v6 = to->sa_family == AF_INET6;
  return ntohs(is_v6 ? reinterpret_cast<const sockaddr_in6*>(address.bytes)->sin6_port
                     : reinterpret_cast<const sockaddr_in*>(address.bytes)->sin_port);
}

}  // namespace

Result<std::unique_ptr<PeerListener>> PeerListener::open(PeerListenerOptions options) {
  std::optional<net::TlsServer> tls;
  if (!options.tls_certificate.empty()) {
    ASSIGN_OR_RETURN(tls, net::TlsServer::load(options.tls_certificate, options.tls_key));
  }
  kv::HostMemory staging;
  if (options.copier) {
    ASSIGN_OR_RETURN(staging, options.copier->take_memory(options.page_bytes));
  }
  ASSIGN_OR_RETURN(const int socket, bind_socket(options.address));
  std::unique_ptr<PeerListener> listener(
      new PeerListener(std::move(options), socket, port_of(socket)));
  if (tls) listener->tls_ = std::make_unique<const net::TlsServer>(*std::move(tls));
  listener->staging_ = std::move(staging);
  return listener;
}

PeerListener::PeerListener(PeerListenerOptions options, int socket, std::uint16_t port)
    : options_(std::move(options)),
      socket_(socket),
      port_(port),
      cipher_(options_.key),
      mail_(std::make_shared<Mail>()) {}

PeerListener::~PeerListener() {
  stop();
  ::close(socket_);
}

void PeerListener::start(kv::PageLessor& lessor, const DeploymentId& deployment) {
  ASSERT(!thread_.joinable(), "a listener starts once");
  lessor_ = &lessor;
  deployment_ = deployment;
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "peers");
}

void PeerListener::stop() {
  if (!thread_.joinable()) return;
  mail_->leave([](Mail& mail) { mail.is_stopping = true; });
  thread_.join();
}

PeerServed PeerListener::served() const {
  return {.connections = connections_,
          .refused = refused_,
          .pages_leased = pages_leased_,
          .leases_expired = leases_expired_,
          .pages_sent = pages_sent_,
          .bytes_sent = bytes_sent_};
}

Status PeerListener::reload_certificate() {
  if (!has_tls()) return ok_status();
  ASSIGN_OR_RETURN(net::TlsServer read,
                   net::TlsServer::load(options_.tls_certificate, options_.tls_key));
  auto tls = std::make_unique<const net::TlsServer>(std::move(read));
  mail_->leave([&](Mail& mail) { mail.letters.certificate = std::move(tls); });
  return ok_status();
}

void PeerListener::take(std::vector<kv::LeasedPage> pages, std::vector<kv::BlockHash> prompt) {
  if (options_.copier && !options_.copier->order().ok()) {
    std::vector<kv::BlockId> blocks;
    for (const kv::LeasedPage& page : std::exchange(pages, {})) blocks.push_back(page.block);
    lessor_->end_leases(std::move(blocks));
  }
  mail_->leave([&](Mail& mail) {
    mail.letters.taken.push_back({.pages = std::move(pages), .blocks = std::move(prompt)});
  });
}

void PeerListener::revoke(std::optional<kv::OwnerTag> owner) {
  mail_->leave([&](Mail& mail) { mail.letters.revoked.push_back(owner); });
}

void PeerListener::run() {
  ignore_broken_pipes();
  for (;;) {
    take_mail();
    if (mail_->is_stopping) break;
    accept_clients();
    has_more_ = false;
    for (const auto& [number, client] : clients_) move(*client);
    end_what_is_over();
    give_back();
    show();
    wait();
  }
  book_.revoke(std::nullopt, ended_);
  clients_.clear();
  give_back();
}

void PeerListener::take_mail() {
  Mail::Letters letters = mail_->take();
  if (letters.certificate) tls_ = std::move(letters.certificate);
  for (Mail::Letters::Prompt& prompt : letters.taken) {
    wake_waiting(prompt.blocks);
    hold(LeaseBook::kNobody, std::move(prompt.pages));
  }
  for (const std::uint64_t number : std::exchange(woken_, {})) settle(number);
  for (auto& [find, pages] : letters.found) take_found(find, std::move(pages));
  for (auto& [client, key, pages] : letters.pages) take_page(client, key, std::move(pages));
  for (const auto& owner : letters.revoked) book_.revoke(owner, ended_);
}

// Leases pages by the cache's thread; the listener's gets them with its mail.
void PeerListener::ask(std::vector<kv::PageKey> keys,
                       std::function<void(Mail&, std::vector<kv::LeasedPage>)> leave) {
  lessor_->lease(std::move(keys), [mail = mail_, copier = options_.copier.get(), lessor = lessor_,
                                   leave = std::move(leave)](std::vector<kv::LeasedPage> pages) {
    if (copier != nullptr && !copier->order().ok()) {
      std::vector<kv::BlockId> blocks;
      for (const kv::LeasedPage& page : std::exchange(pages, {})) blocks.push_back(page.block);
      lessor->end_leases(std::move(blocks));
    }
    mail->leave([&](Mail& room) { leave(room, std::move(pages)); });
  });
}

void PeerListener::hold(LeaseBook::Holder holder, std::vector<kv::LeasedPage> pages) {
  const std::int64_t until_ns = clock_.now_ns() + options_.lease_ns;
  for (kv::LeasedPage& page : pages) {
    const std::optional<kv::BlockId> doubled = book_.add(holder, std::move(page), until_ns);
    if (doubled) ended_.push_back(*doubled);
  }
}

void PeerListener::accept_clients() {
  if (clock_.now_ns() < accept_again_ns_) return;
  for (;;) {
    const int descriptor = ::accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) {
      const bool has_none =
          errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (has_none) accept_again_ns_ = clock_.now_ns() + kAcceptAgainNs;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    if (clients_.size() - proven_clients() >= options_.connections_max) let_oldest_stranger_go();
    Result<net::Socket> socket = net::Socket::adopt(descriptor, tls_.get());
    if (!socket.ok()) continue;
    const LeaseBook::Holder number = next_client_++;
    clients_.emplace(number, std::make_unique<PeerConnection>(number, std::move(socket).value(),
                                                              clock_.now_ns()));
  }
}

// Numbers rise with time. A client of ours proves itself within two round trips.
void PeerListener::let_oldest_stranger_go() {
  const auto oldest = std::find_if(clients_.begin(), clients_.end(),
                                   [](const auto& client) { return !client.second->is_proven(); });
  refuse(*oldest->second, "too many wait to prove themselves");
  clients_.erase(oldest);
}

std::size_t PeerListener::proven_clients() const {
  return static_cast<std::size_t>(
      std::count_if(clients_.begin(), clients_.end(),
                    [](const auto& client) { return client.second->is_proven(); }));
}

void PeerListener::note_once(const std::string& kind, const std::string& text) {
  if (options_.note && noted_.insert(kind).second) options_.note(text);
}

void PeerListener::refuse(PeerConnection& client, const std::string& why) {
  if (!client.is_proven()) {
    ++refused_;
    note_once("unproven",
              fmt::format("a connection to {} was refused: {}", options_.address.shown(), why));
  }
  client.end();
}

PeerConnection* PeerListener::client_of(LeaseBook::Holder number) {
  const auto found = clients_.find(number);
  return found == clients_.end() || found->second->is_over() ? nullptr : found->second.get();
}

// Ends connections that are over or take too long, leases that are over, and waits.
void PeerListener::end_what_is_over() {
  const std::int64_t now_ns = clock_.now_ns();
  for (const auto& [number, client] : clients_) {
    const bool is_late =
        !client->is_proven() && now_ns >= client->begun_ns() + options_.handshake_ns;
    const bool stalls = client->out_bytes() > 0 && now_ns >= client->moved_ns() + options_.stall_ns;
    if (!client->is_over() && (is_late || stalls)) {
      refuse(*client, is_late ? "it did not prove itself in time" : "it takes no bytes");
    }
    if (client->is_over()) book_.end_all(number, ended_);
  }
  std::erase_if(clients_, [](const auto& client) { return client.second->is_over(); });
  for (auto find = finds_.begin(); find != finds_.end();) {
    find = client_of(find->second.client) == nullptr ? forget(find) : std::next(find);
  }
  std::vector<std::uint64_t> overdue;
  for (const auto& [number, find] : finds_) {
    if (find.is_waiting && now_ns >= find.wait_until_ns) overdue.push_back(number);
  }
  for (const std::uint64_t number : overdue) answer(number);
  leases_expired_ += book_.expire(now_ns, ended_);
}

void PeerListener::give_back() {
  if (!ended_.empty()) lessor_->end_leases(std::exchange(ended_, {}));
}

void PeerListener::show() {
  connections_ = clients_.size();
  pages_leased_ = book_.size();
}

void PeerListener::wait() {
  std::int64_t until_ns = book_.next_end_ns();
  const std::int64_t now_ns = clock_.now_ns();
  const bool accepts = now_ns >= accept_again_ns_;
  if (!accepts) until_ns = std::min(until_ns, accept_again_ns_);
  sources_.assign({{mail_->wakeup.descriptor(), POLLIN, 0}});
  if (accepts) sources_.push_back({socket_, POLLIN, 0});
  for (const auto& [number, client] : clients_) {
    sources_.push_back({client->descriptor(), client->events(options_.out_bytes_max), 0});
    if (!client->is_proven())
      until_ns = std::min(until_ns, client->begun_ns() + options_.handshake_ns);
    if (client->out_bytes() > 0)
      until_ns = std::min(until_ns, client->moved_ns() + options_.stall_ns);
    has_more_ = has_more_ || client->has_more();
  }
  for (const auto& [number, find] : finds_) {
    if (find.is_waiting) until_ns = std::min(until_ns, find.wait_until_ns);
  }
  int timeout_ms = -1;
  if (has_more_) {
    timeout_ms = 0;
  } else if (until_ns != INT64_MAX) {
    timeout_ms =
        static_cast<int>(std::clamp<std::int64_t>((until_ns - now_ns) / 1'000'000 + 1, 0, 60'000));
  }
  ::poll(sources_.data(), sources_.size(), timeout_ms);
  mail_->wakeup.clear();
}

}  // namespace pagoda::store
