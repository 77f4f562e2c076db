#include "kernels/cuda/attention/attention_kernels.cuh"
#include "kernels/cuda/gemm/gemm_kernels.cuh"

namespace pagoda::kernels::cuda {

Status prepare_kernels() {
  // The same division of a processor's memory for all kernels: to change it, it must be empty, and
  // a launch could not begin before the one before it has ended.
  static_cast<void>(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
  for (const cudaError_t code : {prepare_gemm(), prepare_attention()}) {
    if (code == cudaSuccess) continue;
    return Error{ErrorCode::kUnsupported,
                 std::string("GPU: making kernels ready: ") + cudaGetErrorString(code)};
  }
  return ok_status();
}

}  // namespace pagoda::kernels::cuda
