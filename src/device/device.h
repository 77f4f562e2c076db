// The CUDA runtime of one GPU: device memory, pinned host memory, streams, events, graphs.
//
// Streams here are non-blocking: nothing orders them with the legacy default stream, so nothing
// ever runs on that one (tests/tidy checks it). Every object owns what it names and frees it when
// it is destroyed. A call that the machine can make fail returns an Error that names the request.
// Nothing here launches kernels; kernels/cuda does, on a Stream. Compiled only where CUDA is.
//
// Thread rule: one thread at a time uses an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

// Opaque types of the driver.
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace pagoda::device {

using StreamHandle = CUstream_st*;

struct DeviceProperties {
  std::string name;
  std::uint32_t multiprocessors = 0;
  std::uint64_t bytes_free = 0;
  std::uint64_t bytes_all = 0;
};

// Makes the first GPU current for this process and says what it is. An error names what is
// missing: the driver, a GPU, or the architecture (compute capability 9.0) this was compiled for.
Result<DeviceProperties> open_gpu();

// An error that names the GPU and both numbers when its compute capability is not the one this was
// compiled for.
Status check_capability(const std::string& name, int major, int minor);

// Returns the bytes of device memory that are free now.
Result<std::uint64_t> gpu_bytes_free();

// Buffer is memory of the device.
class Buffer {
 public:
  Buffer() = default;
  // Zeroes the memory before it returns, so that a write on any stream comes after. `what` names
  // the memory in the error.
  static Result<Buffer> allocate(std::uint64_t bytes, const char* what);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void swap(Buffer& other) {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// PinnedBuffer is host memory that the device copies from and to asynchronously.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  static Result<PinnedBuffer> allocate(std::uint64_t bytes, const char* what);
  PinnedBuffer(PinnedBuffer&& other) noexcept { swap(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PinnedBuffer();

  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void swap(PinnedBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Graph is a CUDA graph: work captured once and launched as one.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }
  ~Graph();
  bool empty() const { return graph_ == nullptr; }

 private:
  friend class Stream;
  explicit Graph(CUgraphExec_st* graph) : graph_(graph) {}
  CUgraphExec_st* graph_ = nullptr;
};

class GpuEvent;

// A Stream runs work in order. The error of a kernel surfaces in the first call after it.
class Stream {
 public:
  static Result<Stream> create();
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~Stream();

  StreamHandle handle() const { return stream_; }

  // Copies are asynchronous when the host memory is pinned.
  Status copy_to_device(std::byte* to, const std::byte* from, std::uint64_t bytes);
  Status copy_to_host(std::byte* to, const std::byte* from, std::uint64_t bytes);
  // Copies between any two kinds of memory; the addresses tell which.
  Status copy(std::byte* to, const std::byte* from, std::uint64_t bytes);
  Status copy_on_device(std::byte* to, const std::byte* from, std::uint64_t bytes);
  Status fill(std::byte* to, int value, std::uint64_t bytes);
  // Work that follows begins after the event's last record; at once when it has none.
  Status wait_for(const GpuEvent& event);
  // Waits until all work of the stream is done.
  Status wait();

  Status begin_capture();
  // After an error nothing is captured any more. The captured work can still be launched without a
  // graph unless the device is lost.
  Result<Graph> end_capture();
  Status launch(const Graph& graph);

 private:
  explicit Stream(StreamHandle stream) : stream_(stream) {}
  StreamHandle stream_ = nullptr;
};

enum class GpuEventUse : std::uint8_t {
  kTime,   // read as a time; a host that waits for it does nothing else
  kOrder,  // no time is kept, and a host that waits for it sleeps
};

// A GpuEvent is a point in a stream that other streams and the host can wait for.
class GpuEvent {
 public:
  static Result<GpuEvent> create(GpuEventUse use = GpuEventUse::kTime);
  GpuEvent(GpuEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  GpuEvent& operator=(GpuEvent&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~GpuEvent();

  Status record(const Stream& stream);
  Status wait() const;
  // Both events must have passed and be of GpuEventUse::kTime.
  Result<double> seconds_since(const GpuEvent& earlier) const;

 private:
  friend class Stream;
  explicit GpuEvent(CUevent_st* event) : event_(event) {}
  CUevent_st* event_ = nullptr;
};

// Returns the error of this thread's last kernel launch, if it failed.
Status last_launch_error();

// For tests: from the call with this number on (1 is the next), every call that can fail does, as
// on a device that is lost. 0 ends it.
void fail_from_call(std::uint64_t number);

// For tests: the next `count` graphs cannot be made, as where device memory has run out.
void fail_next_graphs(std::uint64_t count);

}  // namespace pagoda::device
