// How a remote store is used. Everything has a limit: what waits, what travels, what is remembered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "store/remote/remote_url.h"

namespace pagoda::store {

struct RemoteOptions {
  RemoteUrl url;

  // A page is gone that long after it was written, used or not.
  std::uint32_t ttl_s = 24 * 3600;
  // To connect, agree on keys and be let in.
  std::int64_t connect_timeout_ns = 1'000'000'000;
  // From the call of read(), write() or find() to its report.
  std::int64_t request_timeout_ns = 2'000'000'000;
  // Requests that time out one after another, before the connection is given up.
  std::uint32_t timeouts_max = 3;
  // Between attempts to connect: doubled from the first to the second.
  std::int64_t retry_first_ns = 100'000'000;
  std::int64_t retry_last_ns = 10'000'000'000;
  // For remove() and remove_all() as a whole.
  std::int64_t removal_timeout_ns = 60'000'000'000;

  // Writes that the server refuses one after another (a replica, no memory left, no right to),
  // before none is sent for a while.
  std::uint32_t write_refusals_max = 8;
  std::int64_t write_retry_ns = 30'000'000'000;

  // Larger values are cut into parts. 0: what the server says (Memcached), 512 MiB (Redis).
  std::size_t item_bytes_max = 0;

  std::size_t reads_queued_max = 16'384;  // lookups too
  std::size_t write_bytes_queued_max = 64u << 20;
  std::size_t bytes_in_flight_max = 16u
                                    << 20;  // of values: asked for, or sent and not acknowledged
  std::size_t keys_known_max = 65'536;

  // AES-256-GCM of labels and pages; empty: none.
  std::string key_file;
  // TLS: who signed the server's certificate (empty: whom the system trusts); what it asks of us.
  std::string tls_ca_file;
  std::string tls_certificate_file;
  std::string tls_key_file;
};

}  // namespace pagoda::store
