// How every kernel here is launched: it may begin while the launch before it ends, and calls
// wait_for_launch_before() before it touches anything that a launch wrote.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace pagoda::kernels::cuda {

// Blocks that follow each other in y run together, `cluster` at a time, and reach each other's
// shared memory.
template <class... Parameters, class... Arguments>
void launch_clusters(void (*kernel)(Parameters...), dim3 grid, std::uint32_t cluster,
                     std::uint32_t threads, std::uint32_t shared_bytes, cudaStream_t stream,
                     const Arguments&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {1, cluster, 1};
  config.attrs = attributes;
  config.numAttrs = cluster > 1 ? 2 : 1;
  // An error stays with the thread until device::last_launch() takes it.
  static_cast<void>(cudaLaunchKernelEx(&config, kernel, arguments...));
}

template <class... Parameters, class... Arguments>
void launch_kernel(void (*kernel)(Parameters...), dim3 grid, std::uint32_t threads,
                   std::uint32_t shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
  launch_clusters(kernel, grid, 1, threads, shared_bytes, stream, arguments...);
}

}  // namespace pagoda::kernels::cuda
