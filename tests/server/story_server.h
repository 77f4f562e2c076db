// A fixture: the server over stories260K on a loopback port, and clients that send requests.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/server.h"
#include "server/story_fixture.h"

namespace pagoda::server {

inline constexpr int kTimeoutSeconds = 20;

inline ServerOptions small_server() {
  ServerOptions options;
  options.port = 0;
  options.threads = 1;
  options.text_threads = 1;
  // So that a connection which is not released is soon missed.
  options.connections_per_client_max = 2;
  options.body_memory_max = 1 << 20;
  options.request_memory_max = 64 << 20;
  options.connection.body_bytes_max = 1 << 20;
  options.version = "1.2.3";
  return options;
}

inline std::string posted(const std::string& path, const std::string& body) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

inline std::string chunked(const std::string& path, const std::string& body) {
  std::string text = "POST " + path +
                     " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  constexpr std::size_t kChunk = 1 << 12;
  for (std::size_t at = 0; at < body.size(); at += kChunk) {
    const std::string chunk = body.substr(at, kChunk);
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", chunk.size());
    text += size + chunk + "\r\n";
  }
  return text + "0\r\n\r\n";
}

inline std::string got(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
}

// Reads until the server closes the connection; returns nothing when it does not.
inline std::optional<std::string> read_to_end(int client) {
  std::string answer;
  char bytes[4096];
  ssize_t count = 0;
  while ((count = recv(client, bytes, sizeof bytes, 0)) > 0) {
    answer.append(bytes, static_cast<std::size_t>(count));
  }
  if (count < 0 && errno == EAGAIN) return std::nullopt;
  return answer;
}

// Connects a client to this port of this machine and sends the request; -1 when it cannot. The
// caller closes the socket.
inline int connected_to(std::uint16_t port, const std::string& request) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval timeout = {.tv_sec = kTimeoutSeconds, .tv_usec = 0};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  if (connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    send(client, request.data(), request.size(), MSG_NOSIGNAL);
    return client;
  }
  close(client);
  return -1;
}

inline std::uint16_t port_of(const Server& server) {
  const std::string address = server.address();
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

class StoryServer {
 public:
  explicit StoryServer(const ServerOptions& options = small_server())
      : model_{.names = {"stories"},
               .tokenizer = fixture_.tokenizer(),
               .chat_template = text::ChatTemplate::parse("story", kStoryTemplate,
                                                          text::special_texts(fixture_.tokenizer()))
                                    .value(),
               .engine = fixture_.engine(),
               .step_notifier = fixture_.served().step_notifier,
               .fingerprint = "test",
               .shows_tree = true} {
    server_ = Server::listen(options, [this](int signal) { on_signal_(signal); }).value();
    server_->open(model_);
    port_ = port_of(*server_);
  }
  ~StoryServer() { server_->stop(); }
  StoryServer(const StoryServer&) = delete;
  StoryServer& operator=(const StoryServer&) = delete;

  StoryFixture& fixture() { return fixture_; }
  // Call this before the first request.
  void set_template(const std::string& source) {
    model_.chat_template =
        text::ChatTemplate::parse("test", source, text::special_texts(fixture_.tokenizer()))
            .value();
  }
  void set_signal_handler(std::function<void(int)> handler) { on_signal_ = std::move(handler); }

  // Connects a client and sends the request; -1 when it cannot. The caller closes the socket.
  int connected(const std::string& request) const { return connected_to(port_, request); }
  static std::optional<std::string> read_all(int client) { return read_to_end(client); }
  // With `half_closes` the client closes its sending side, and reads.
  std::optional<std::string> ask(const std::string& request, bool half_closes = false) const {
    const int client = connected(request);
    if (client < 0) return std::nullopt;
    if (half_closes) shutdown(client, SHUT_WR);
    std::optional<std::string> answer = read_all(client);
    close(client);
    return answer;
  }

 private:
  StoryFixture fixture_;
  ServedModel model_;
  std::function<void(int)> on_signal_ = [](int) {};
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
};

// Returns the processor time in seconds of all threads of this name.
inline double cpu_seconds_of(const std::string& name) {
  double seconds = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::ifstream(task.path() / "comm") >> comm;
    if (comm != name) continue;
    double on_cpu_ns = 0;
    std::ifstream(task.path() / "schedstat") >> on_cpu_ns;
    seconds += on_cpu_ns * 1e-9;
  }
  return seconds;
}

}  // namespace pagoda::server
