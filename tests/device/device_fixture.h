// Memory of a GPU and a stream, for tests of kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "device/device.h"

namespace pagoda::gpu_test {

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.error().message;
    std::abort();
  }
  return std::move(result).value();
}

class DeviceFixture {
 public:
  template <class T>
  device::Buffer send(const std::vector<T>& values) {
    auto buffer = value_of(device::Buffer::allocate(values.size() * sizeof(T), "a test"));
    EXPECT_TRUE(stream_
                    .copy_to_device(buffer.data(),
                                    reinterpret_cast<const std::byte*>(values.data()),
                                    values.size() * sizeof(T))
                    .ok());
    finish();
    return buffer;
  }
  // Nothing there is what a kernel would write.
  device::Buffer poisoned(std::uint64_t bytes) {
    auto buffer = value_of(device::Buffer::allocate(bytes, "a test"));
    EXPECT_TRUE(stream_.fill(buffer.data(), 0xFF, bytes).ok());
    return buffer;
  }
  template <class T>
  std::vector<T> fetch(const device::Buffer& buffer, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(stream_
                    .copy_to_host(reinterpret_cast<std::byte*>(values.data()), buffer.data(),
                                  count * sizeof(T))
                    .ok());
    finish();
    return values;
  }
  void finish() {
    const Status launched = device::last_launch_error();
    ASSERT_TRUE(launched.ok()) << launched.error().message;
    const Status done = stream_.wait();
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  device::Stream& stream() { return stream_; }

 private:
  device::Stream stream_ = value_of(device::Stream::create());
};

}  // namespace pagoda::gpu_test
