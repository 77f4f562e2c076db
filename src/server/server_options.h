// Where the server listens, and its limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "server/access/access_rules.h"
#include "server/option_name.h"
#include "server/request_log.h"

namespace pagoda::server {

// The default for the bodies of all connections together, in bytes.
inline constexpr std::uint64_t kBodyMemoryMax = std::uint64_t{256} << 20;
inline constexpr std::uint64_t kRequestsMemoryMax = std::uint64_t{1} << 30;

struct ConnectionOptions {
  std::uint32_t header_bytes_max = 16 << 10;
  std::uint64_t body_bytes_max = 32 << 20;
  // Bytes of following requests that are read during a reply.
  std::uint32_t ahead_bytes_max = 64 << 10;
  std::chrono::milliseconds idle_timeout{75'000};     // the longest pause between two requests
  std::chrono::milliseconds request_timeout{60'000};  // from a request's first byte to its last
  std::chrono::milliseconds write_timeout{
      30'000};                                   // for 64 KiB of a reply, and see Connection::write
  std::chrono::milliseconds keep_alive{10'000};  // a stream sends something at least this often
};

// Paths of PEM files.
struct TlsFiles {
  std::string certificate;  // with its chain
  std::string key;
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;                        // 0: any free port
  std::uint32_t threads = 2;                        // threads that run connections
  std::uint32_t text_threads = 2;                   // threads of TextWorkers
  std::uint32_t connections_max = 4096;             // further connections wait to be accepted
  std::uint32_t connections_per_client_max = 1024;  // by address; further connections are refused
  std::uint64_t body_memory_max = kBodyMemoryMax;
  std::uint64_t request_memory_max = kRequestsMemoryMax;
  std::string version;
  std::optional<TlsFiles> tls;
  AccessRules access;
  ConnectionOptions connection;
  LogOptions log;
  OptionName option_name = plain_option_name;  // for replies that name an option
};

}  // namespace pagoda::server
