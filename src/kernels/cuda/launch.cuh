// How every kernel here is launched: it may begin while the launch before it ends, and calls
// pdl_wait() before it touches anything that a launch wrote.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace pagoda::kernels::cuda {

// The multiprocessors of an H100 or H200, and the blocks of a persistent kernel.
inline constexpr std::uint32_t kSmCount = 132;

template <class... Parameters, class... Arguments>
void launch_kernel(void (*kernel)(Parameters...), dim3 grid, std::uint32_t threads,
                   std::uint32_t shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  // An error stays with the thread until device::last_launch_error() takes it.
  static_cast<void>(cudaLaunchKernelEx(&config, kernel, arguments...));
}

// Allows a kernel dynamic shared memory above 48 KB. Called once, before the first launch.
template <class... Parameters>
cudaError_t allow_dynamic_smem(void (*kernel)(Parameters...), std::uint32_t bytes) {
  const cudaError_t carved = cudaFuncSetAttribute(
      kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  if (carved != cudaSuccess) return carved;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

}  // namespace pagoda::kernels::cuda
