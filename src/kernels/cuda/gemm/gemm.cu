// Which kernels multiply. Those of a format all give the same bits.
#include "kernels/cuda/gemm/gemm_kernels.cuh"

namespace pagoda::kernels::cuda {

void launch_gemm(const Gemm& job, StreamHandle stream) {
  switch (job.weight.format) {
    case WeightFormat::kBf16:
      return bf16_gemm(job, stream);
    case WeightFormat::kInt4:
      return int4_gemm(job, stream);
    case WeightFormat::kInt4Min:
      return int4_min_gemm(job, stream);
    case WeightFormat::kInt8:
      return int8_gemm(job, stream);
    case WeightFormat::kInt8Group16:
      return int8_group16_gemm(job, stream);
  }
}

Status prepare_kernels() {
  // The same division of a processor's memory for all kernels: to change it, it must be empty, and
  // a launch could not begin before the one before it has ended.
  static_cast<void>(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
  for (const cudaError_t code :
       {prepare_bf16_gemm(), prepare_int4_gemm(), prepare_int4_min_gemm(), prepare_int8_gemm(),
        prepare_int8_group16_gemm(), prepare_attention()}) {
    if (code == cudaSuccess) continue;
    return Error{ErrorCode::kUnsupported,
                 std::string("GPU: making kernels ready: ") + cudaGetErrorString(code)};
  }
  return ok_status();
}

}  // namespace pagoda::kernels::cuda
