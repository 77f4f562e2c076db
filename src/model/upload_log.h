// What was put into device memory once and must stay as it was: weights and rotary tables, each
// with the digest of its bytes. A start checks device memory against it before the first request.
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
  // Records bytes that were made on the device, by the digest they have now. Waits.
  Status record(device::Stream& stream, const std::byte* data, std::uint64_t bytes,
                std::string what);

  // Reads all of it on the device. An error names the first upload whose bytes are not those that
  // were sent.
  Status check(device::Stream& stream) const;
  // Over all entries in order: the same weights have the same digest at every start.
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
