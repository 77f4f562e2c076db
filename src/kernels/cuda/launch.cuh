// How every kernel here is launched: it may begin while the launch before it ends, and calls
// wait_for_launch_before() before it touches anything that a launch wrote.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace pagoda::kernels::cuda {

template <class... Parameters, class... Arguments>
void launch_kernel(void (*kernel)(Parameters...), dim3 grid, std::uint32_t threads,
                   std::uint32_t shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &overlap;
  config.numAttrs = 1;
  // An error stays with the thread until device::last_launch() takes it.
  static_cast<void>(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace pagoda::kernels::cuda
