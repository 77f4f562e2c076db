// Where the server listens and what it bounds.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "server/access/access_rules.h"
#include "server/request_log.h"

namespace pagoda::server {

// Of all connections together, where not said.
inline constexpr std::uint64_t kBodyMemoryMax = std::uint64_t{256} << 20;
inline constexpr std::uint64_t kRequestsMemoryMax = std::uint64_t{1} << 30;

struct ConnectionOptions {
  std::uint32_t header_bytes_max = 16 << 10;
  std::uint64_t body_bytes_max = 32 << 20;
  std::uint32_t ahead_bytes_max = 64 << 10;           // of the next requests, during a reply
  std::chrono::milliseconds idle_timeout{75'000};     // between requests
  std::chrono::milliseconds request_timeout{60'000};  // from a request's first byte to its last
  std::chrono::milliseconds write_timeout{30'000};    // of one piece of a reply
  std::chrono::milliseconds keep_alive{10'000};       // a stream is not silent for longer
};

// Files in PEM.
struct TlsFiles {
  std::string certificate;  // with the chain behind it
  std::string key;
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;                        // 0: any that is free
  std::uint32_t threads = 2;                        // of connections
  std::uint32_t text_threads = 2;                   // of requests that take long to read
  std::uint32_t connections_max = 4096;             // more wait to be accepted
  std::uint32_t connections_per_client_max = 1024;  // of one address; more are turned away
  std::uint64_t body_memory_max = kBodyMemoryMax;
  std::uint64_t request_memory_max = kRequestsMemoryMax;
  std::string version;
  std::optional<TlsFiles> tls;
  AccessRules access;
  ConnectionOptions connection;
  LogOptions log;
};

}  // namespace pagoda::server
