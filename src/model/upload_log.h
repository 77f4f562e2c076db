// Records what was uploaded to device memory once and must not change: weights and rotary tables,
// each with the digest of its bytes. A start checks device memory against the log before the first
// request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "device/device.h"

namespace pagoda::model {

class UploadLog {
 public:
  // Copies host bytes to `to` (device memory), waits, and records their digest.
  Status upload(device::Stream& stream, std::span<const std::byte> from, std::byte* to,
                std::string what, ThreadPool* pool = nullptr);
  // Records bytes that were made on the device, by their current digest, and waits for it.
  Status record(device::Stream& stream, const std::byte* data, std::uint64_t bytes,
                std::string what);

  // Reads all uploads on the device. An error names the first whose bytes differ from those sent.
  Status check(device::Stream& stream) const;
  // A digest over all entries in order: the same weights have the same digest at every start.
  std::uint64_t digest() const;

 private:
  struct Entry {
    const std::byte* data;
    std::uint64_t bytes;
    std::uint64_t digest;
    std::string what;
  };
  static Result<std::vector<std::uint64_t>> digests_on_device(device::Stream& stream,
                                                              std::span<const Entry> entries);

  std::vector<Entry> entries_;
};

}  // namespace pagoda::model
