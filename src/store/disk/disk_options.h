// How a disk store is set up.
#pragma once

#include <cstdint>
#include <string>

namespace pagoda::store {

struct DiskOptions {
  std::string path;             // made when missing, mode 0700
  std::uint64_t bytes_max = 0;  // of all files together
  std::uint64_t page_bytes = 0;
  std::uint32_t block_tokens = 0;
  std::string key_file;    // empty: not encrypted
  bool read_only = false;  // pages are read, none are written

  std::uint64_t scrub_bytes_per_s = 20'000'000;  // 0: no scrub
  std::int64_t scrub_every_ns = 86'400'000'000'000;
  std::int64_t commit_after_ns = 200'000'000;      // from a write to the sync that makes it durable
  std::int64_t lookup_limit_ns = 1'000'000'000;    // for a lookup while the index is being read
  std::int64_t request_limit_ns = 10'000'000'000;  // then a read or write ends with kTimeout
  std::int64_t retry_after_ns = 30'000'000'000;    // of a store that was switched off
  std::uint32_t failures_max = 8;                  // in a row, then it is switched off
  std::uint32_t writes_waiting_max = 256;
  std::uint64_t staging_bytes_max = std::uint64_t{64} << 20;

  // For tests.
  bool use_uring = true;
  std::uint64_t bytes_per_s_max = 0;  // of reads and writes together; 0: as fast as the disk
};

// The limit of a store that is given none: 20 GiB, or a tenth of what would be free without it, so
// that a store that is full keeps its limit from one start to the next.
std::uint64_t default_disk_bytes(std::uint64_t bytes_free, std::uint64_t bytes_taken);
// On disk, by a store's files in a folder; 0 where there is none.
std::uint64_t bytes_taken(const std::string& path);

}  // namespace pagoda::store
