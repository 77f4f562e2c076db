// DiskOptions set up a disk store.
#pragma once

#include <cstdint>
#include <string>

namespace pagoda::store {

struct DiskOptions {
  std::string path;             // made when missing, mode 0700
  std::uint64_t bytes_max = 0;  // bytes of all files together
  std::uint64_t page_bytes = 0;
  std::uint32_t block_tokens = 0;
  std::string key_file;    // empty: pages are not encrypted
  bool read_only = false;  // true: pages are read, none are written

  std::uint64_t scrub_bytes_per_s = 20'000'000;  // 0: no scrub
  std::int64_t scrub_every_ns = 86'400'000'000'000;
  std::int64_t commit_after_ns = 200'000'000;      // from a write to the sync that makes it durable
  std::int64_t lookup_limit_ns = 1'000'000'000;    // a lookup's time while the index is being read
  std::int64_t request_limit_ns = 10'000'000'000;  // then a read or write ends with kTimeout
  std::int64_t retry_after_ns = 30'000'000'000;    // how long a failed store stays switched off
  std::uint32_t failures_max = 8;                  // so many failures in a row switch the store off
  std::uint32_t writes_waiting_max = 256;
  std::uint64_t staging_bytes_max = std::uint64_t{64} << 20;

  // For tests.
  bool use_uring = true;
  std::uint64_t bytes_per_s_max = 0;  // of reads and writes together; 0: as fast as the disk
};

// Returns the default limit of a store: 20 GiB, or a tenth of what would be free without the store,
// so that a full store keeps its limit from one start to the next.
std::uint64_t default_disk_bytes(std::uint64_t bytes_free, std::uint64_t bytes_taken);
// Returns the bytes on disk of a store's files in a folder; 0 where there are none.
std::uint64_t bytes_taken(const std::string& path);

}  // namespace pagoda::store
