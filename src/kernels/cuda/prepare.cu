#include "kernels/cuda/attention/attention_kernels.cuh"
#include "kernels/cuda/gemm/gemm_kernels.cuh"

namespace pagoda::kernels::cuda {

Status prepare_kernels() {
  // All kernels divide a multiprocessor's memory in the same way: it must be idle to divide it
  // anew, and then no launch could begin before the one before it has ended.
  static_cast<void>(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
  for (const cudaError_t code : {prepare_gemm(), prepare_attention()}) {
    if (code == cudaSuccess) continue;
    return Error{ErrorCode::kUnsupported,
                 std::string("GPU: making kernels ready: ") + cudaGetErrorString(code)};
  }
  return ok_status();
}

}  // namespace pagoda::kernels::cuda
