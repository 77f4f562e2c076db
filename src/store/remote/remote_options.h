// RemoteOptions set up a remote store. Everything has a limit: waiting requests, bytes in flight,
// remembered keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "store/remote/remote_url.h"

namespace pagoda::store {

struct RemoteOptions {
  RemoteUrl url;

  // A page expires that long after it was written, used or not.
  std::uint32_t ttl_s = 24 * 3600;
  // The time to connect, agree on keys and be let in.
  std::int64_t connect_timeout_ns = 1'000'000'000;
  // The time from the call of read(), write() or find() to its report.
  std::int64_t request_timeout_ns = 2'000'000'000;
  // So many requests time out one after another before the connection is given up.
  std::uint32_t timeouts_max = 3;
  // The time between attempts to connect: doubled from the first to the second.
  std::int64_t retry_first_ns = 100'000'000;
  std::int64_t retry_last_ns = 10'000'000'000;
  // The time for remove() and remove_all() as a whole.
  std::int64_t removal_timeout_ns = 60'000'000'000;

  // The server refuses so many writes one after another (a replica, no memory left, no right to)
  // before none is sent for a while.
  std::uint32_t write_refusals_max = 8;
  std::int64_t write_retry_ns = 30'000'000'000;

  // Larger values are cut into parts. 0: the server's limit (Memcached), 512 MiB (Redis).
  std::size_t item_bytes_max = 0;

  std::size_t reads_queued_max = 16'384;  // lookups count, too
  std::size_t write_bytes_queued_max = 64u << 20;
  // Bytes of values that are asked for, or sent and not acknowledged.
  std::size_t bytes_in_flight_max = 16u << 20;
  std::size_t keys_known_max = 65'536;

  // Key file for AES-256-GCM of labels and pages; empty: none.
  std::string key_file;
  // TLS: who signed the server's certificate (empty: the system's authorities); our own certificate
  // and key, where the server asks for them.
  std::string tls_ca_file;
  std::string tls_certificate_file;
  std::string tls_key_file;
};

}  // namespace pagoda::store
