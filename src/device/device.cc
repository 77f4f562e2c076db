#include "device/device.h"

#include <cuda_runtime_api.h>

#include <atomic>

namespace pagoda::device {
namespace {

constexpr int kMajor = 9;  // the architecture that kernels/cuda is compiled for
constexpr int kMinor = 0;

Error error_of(cudaError_t code, const std::string& what) {
  const bool memory = code == cudaErrorMemoryAllocation;
  return {memory ? ErrorCode::kExhausted : ErrorCode::kIo,
          what + ": " + cudaGetErrorName(code) + " (" + cudaGetErrorString(code) + ")"};
}

std::atomic<std::uint64_t> calls_to_failure{0};  // 0: none fails

// Counts down to 1 and stays there.
bool fails_by_request() {
  std::uint64_t left = calls_to_failure.load(std::memory_order_relaxed);
  while (left > 1) {
    if (calls_to_failure.compare_exchange_weak(left, left - 1)) return false;
  }
  return left == 1;
}

std::atomic<std::uint64_t> graphs_to_fail{0};

bool graph_fails_by_request() {
  std::uint64_t left = graphs_to_fail.load(std::memory_order_relaxed);
  while (left > 0) {
    if (graphs_to_fail.compare_exchange_weak(left, left - 1)) return true;
  }
  return false;
}

Status status_of(cudaError_t code, const char* what) {
  if (code == cudaSuccess && fails_by_request()) code = cudaErrorLaunchFailure;
  if (code == cudaSuccess) return ok_status();
  return error_of(code, std::string("GPU: ") + what);
}

}  // namespace

Status check_capability(const std::string& name, int major, int minor) {
  if (major == kMajor && minor == kMinor) return ok_status();
  return Error{ErrorCode::kUnsupported,
               "the GPU '" + name + "' has compute capability " + std::to_string(major) + "." +
                   std::to_string(minor) + ", but this program's kernels are for 9.0 (H100, H200)"};
}

Result<DeviceProperties> open_gpu() {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    const char* const why = found == cudaSuccess ? "none found" : cudaGetErrorString(found);
    return Error{ErrorCode::kNotFound, std::string("no usable NVIDIA GPU: ") + why};
  }
  cudaDeviceProp facts{};
  RETURN_IF_ERROR(status_of(cudaGetDeviceProperties(&facts, 0), "reading its properties"));
  RETURN_IF_ERROR(check_capability(facts.name, facts.major, facts.minor));
  RETURN_IF_ERROR(status_of(cudaSetDevice(0), "making it current"));
  std::size_t bytes_free = 0;
  std::size_t bytes_all = 0;
  RETURN_IF_ERROR(status_of(cudaMemGetInfo(&bytes_free, &bytes_all), "asking for its memory"));
  return DeviceProperties{.name = facts.name,
                          .multiprocessors = static_cast<std::uint32_t>(facts.multiProcessorCount),
                          .bytes_free = bytes_free,
                          .bytes_all = bytes_all};
}

Result<std::uint64_t> gpu_bytes_free() {
  std::size_t bytes_free = 0;
  std::size_t bytes_all = 0;
  RETURN_IF_ERROR(status_of(cudaMemGetInfo(&bytes_free, &bytes_all), "asking for its memory"));
  return std::uint64_t{bytes_free};
}

Result<Buffer> Buffer::allocate(std::uint64_t bytes, const char* what) {
  Buffer buffer;
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, bytes);
  if (code != cudaSuccess) {
    return error_of(
        code, std::string("GPU memory for ") + what + ", " + std::to_string(bytes) + " bytes");
  }
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.bytes_ = bytes;
  ASSIGN_OR_RETURN(Stream stream, Stream::create());
  RETURN_IF_ERROR(stream.fill(buffer.data_, 0, bytes));
  RETURN_IF_ERROR(stream.wait());
  return buffer;
}

// An error while the process ends has nobody to hear it.
Buffer::~Buffer() { static_cast<void>(cudaFree(data_)); }

Result<PinnedBuffer> PinnedBuffer::allocate(std::uint64_t bytes, const char* what) {
  PinnedBuffer buffer;
  void* data = nullptr;
  const cudaError_t code = cudaMallocHost(&data, bytes);
  if (code != cudaSuccess) {
    return error_of(
        code, std::string("pinned memory for ") + what + ", " + std::to_string(bytes) + " bytes");
  }
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.bytes_ = bytes;
  return buffer;
}

PinnedBuffer::~PinnedBuffer() { static_cast<void>(cudaFreeHost(data_)); }

Graph::~Graph() {
  if (graph_ != nullptr) static_cast<void>(cudaGraphExecDestroy(graph_));
}

Result<Stream> Stream::create() {
  cudaStream_t stream = nullptr;
  RETURN_IF_ERROR(status_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream"));
  return Stream(stream);
}

Stream::~Stream() {
  if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
}

Status Stream::copy_to_device(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  return status_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_),
                   "a copy to it");
}

Status Stream::copy_to_host(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  return status_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_),
                   "a copy from it");
}

Status Stream::copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  return status_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "a copy");
}

Status Stream::copy_on_device(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  return status_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_),
                   "a copy inside it");
}

Status Stream::fill(std::byte* to, int value, std::uint64_t bytes) {
  return status_of(cudaMemsetAsync(to, value, bytes, stream_), "filling memory");
}

Status Stream::wait_for(const GpuEvent& event) {
  return status_of(cudaStreamWaitEvent(stream_, event.event_, 0), "waiting for an event in it");
}

Status Stream::wait() { return status_of(cudaStreamSynchronize(stream_), "waiting for it"); }

Status Stream::begin_capture() {
  return status_of(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                   "beginning a graph");
}

Result<Graph> Stream::end_capture() {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cudaError_t code = cudaStreamEndCapture(stream_, &graph);
  if (code == cudaSuccess && graph_fails_by_request()) code = cudaErrorMemoryAllocation;
  if (code == cudaSuccess) code = cudaGraphInstantiate(&ready, graph, 0);
  Graph made(ready);
  if (code == cudaSuccess) code = cudaGraphUpload(ready, stream_);
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  // The runtime remembers a failed call until it is asked; the next launch did not fail.
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
  RETURN_IF_ERROR(status_of(code, "making a graph"));
  return made;
}

Status Stream::launch(const Graph& graph) {
  return status_of(cudaGraphLaunch(graph.graph_, stream_), "launching a graph");
}

Result<GpuEvent> GpuEvent::create(GpuEventUse use) {
  constexpr unsigned kOrderFlags = cudaEventDisableTiming | cudaEventBlockingSync;
  const unsigned flags = use == GpuEventUse::kOrder ? kOrderFlags : cudaEventDefault;
  cudaEvent_t event = nullptr;
  RETURN_IF_ERROR(status_of(cudaEventCreateWithFlags(&event, flags), "an event"));
  return GpuEvent(event);
}

GpuEvent::~GpuEvent() {
  if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
}

Status GpuEvent::record(const Stream& stream) {
  return status_of(cudaEventRecord(event_, stream.handle()), "recording an event");
}

Status GpuEvent::wait() const {
  return status_of(cudaEventSynchronize(event_), "waiting for an event");
}

Result<double> GpuEvent::seconds_since(const GpuEvent& earlier) const {
  float milliseconds = 0;
  RETURN_IF_ERROR(
      status_of(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "reading a time"));
  return static_cast<double>(milliseconds) * 1e-3;
}

Status last_launch_error() { return status_of(cudaGetLastError(), "launching a kernel"); }

void fail_from_call(std::uint64_t number) { calls_to_failure = number; }

void fail_next_graphs(std::uint64_t count) { graphs_to_fail = count; }

}  // namespace pagoda::device
