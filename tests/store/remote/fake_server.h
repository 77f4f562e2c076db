// FakeServer is a server whose every byte the test decides. Each connection runs the script on a
// thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace pagoda::store {

class FakeServer {
 public:
  class Peer {
   public:
    explicit Peer(int socket) : socket_(socket) {}

    // Return nothing once the client has hung up.
    std::optional<std::string> line();  // without its end of line
    std::optional<std::string> bytes(std::size_t count);
    std::optional<std::vector<std::string>> redis_command();
    // Sends in pieces, each a packet of its own.
    bool send(std::string_view text, std::size_t piece = std::string_view::npos);
    void wait_until_closed();

   private:
    bool fill();
    int socket_;
    std::string unread_;
  };
  using Script = std::function<void(Peer& peer)>;

  explicit FakeServer(Script script);
  ~FakeServer();

  int port() const { return port_; }
  // Connections that clients made before this call, also those that they closed at once: a
  // connection of its own comes behind them and is waited for.
  std::size_t visits_until_now();
  std::string redis_url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  std::string memcached_url() const { return "memcached://127.0.0.1:" + std::to_string(port_); }

 private:
  void accept_all();

  Script script_;
  int listener_;
  int port_;
  std::mutex mutex_;
  std::condition_variable accepted_;
  std::vector<std::uint16_t> ports_;  // of the clients, in their order
  std::size_t own_visits_ = 0;
  std::vector<int> sockets_;
  std::vector<std::thread> sessions_;
  std::thread acceptor_;
};

// A string as Redis sends it.
std::string bulk(const std::string& text);

// Every command is answered by `answer`; greetings are answered +OK by themselves.
FakeServer::Script fake_redis(
    std::function<std::string(const std::vector<std::string>& words)> answer,
    std::size_t piece = std::string_view::npos);

}  // namespace pagoda::store
