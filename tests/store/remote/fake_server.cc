#include "store/remote/fake_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace pagoda::store {

bool FakeServer::Peer::fill() {
  std::array<char, 65536> room;
  const ssize_t got = recv(socket_, room.data(), room.size(), 0);
  if (got <= 0) return false;
  unread_.append(room.data(), static_cast<std::size_t>(got));
  return true;
}

std::optional<std::string> FakeServer::Peer::line() {
  std::size_t end;
  while ((end = unread_.find("\r\n")) == std::string::npos) {
    if (!fill()) return std::nullopt;
  }
  std::string text = unread_.substr(0, end);
  unread_.erase(0, end + 2);
  return text;
}

std::optional<std::string> FakeServer::Peer::bytes(std::size_t count) {
  while (unread_.size() < count) {
    if (!fill()) return std::nullopt;
  }
  std::string text = unread_.substr(0, count);
  unread_.erase(0, count);
  return text;
}

std::optional<std::vector<std::string>> FakeServer::Peer::redis_command() {
  const auto count = line();
  if (!count) return std::nullopt;
  std::vector<std::string> words(std::stoul(count->substr(1)));
  for (std::string& word : words) {
    const auto length = line();
    if (!length) return std::nullopt;
    const auto text = bytes(std::stoul(length->substr(1)) + 2);
    if (!text) return std::nullopt;
    word = text->substr(0, text->size() - 2);
  }
  return words;
}

bool FakeServer::Peer::send(std::string_view text, std::size_t piece) {
  while (!text.empty()) {
    const std::size_t bytes = std::min(piece, text.size());
    const ssize_t sent = ::send(socket_, text.data(), bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void FakeServer::Peer::wait_until_closed() {
  while (fill()) unread_.clear();
}

FakeServer::FakeServer(Script script) : script_(std::move(script)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  bind(listener_, reinterpret_cast<sockaddr*>(&address), bytes);
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &bytes);
  port_ = ntohs(address.sin_port);
  listen(listener_, 16);
  acceptor_ = std::thread([this] { accept_all(); });
}

void FakeServer::accept_all() {
  while (true) {
    sockaddr_in from = {};
    socklen_t bytes = sizeof from;
    const int client = accept4(listener_, reinterpret_cast<sockaddr*>(&from), &bytes, SOCK_CLOEXEC);
    if (client < 0) return;
    const int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard lock(mutex_);
    ports_.push_back(from.sin_port);
    accepted_.notify_all();
    sockets_.push_back(client);
    sessions_.emplace_back([this, client] {
      Peer peer(client);
      script_(peer);
      shutdown(client, SHUT_RDWR);
    });
  }
}

std::size_t FakeServer::visits_until_now() {
  const int visitor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  socklen_t bytes = sizeof address;
  if (connect(visitor, reinterpret_cast<sockaddr*>(&address), bytes) != 0) std::abort();
  getsockname(visitor, reinterpret_cast<sockaddr*>(&address), &bytes);
  std::unique_lock lock(mutex_);
  const auto own = [&] { return std::find(ports_.begin(), ports_.end(), address.sin_port); };
  accepted_.wait(lock, [&] { return own() != ports_.end(); });
  const auto before = static_cast<std::size_t>(own() - ports_.begin());
  close(visitor);
  return before - own_visits_++;
}

FakeServer::~FakeServer() {
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (const int client : sockets_) shutdown(client, SHUT_RDWR);
  for (std::thread& session : sessions_) session.join();
  for (const int client : sockets_) close(client);
  close(listener_);
}

std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

FakeServer::Script fake_redis(
    std::function<std::string(const std::vector<std::string>& words)> answer, std::size_t piece) {
  return [answer = std::move(answer), piece](FakeServer::Peer& peer) {
    while (const auto words = peer.redis_command()) {
      const std::string& verb = words->front();
      const bool greeting = verb == "PING" || verb == "AUTH" || verb == "SELECT";
      if (!peer.send(greeting ? "+OK\r\n" : answer(*words), piece)) return;
    }
  };
}

}  // namespace pagoda::store
