// Which kernels multiply. Those of a form all give the same bits.
#include "kernels/cuda/products.cuh"

namespace pagoda::kernels::cuda {

void launch_product(const Product& job, Stream stream) {
  switch (job.weight.form) {
    case Form::kBf16:
      return bf16(job, stream);
    case Form::kCodes4:
      return codes4(job, stream);
    case Form::kCodes4Minimum:
      return codes4_minimum(job, stream);
    case Form::kCodes8:
      return codes8(job, stream);
    case Form::kCodes8Short:
      return codes8_short(job, stream);
  }
}

Status prepare_kernels() {
  // The same division of a processor's memory for all kernels: to change it, it must be empty, and
  // a launch could not begin before the one before it has ended.
  static_cast<void>(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
  for (const cudaError_t code : {prepare_bf16(), prepare_codes4(), prepare_codes4_minimum(),
                                 prepare_codes8(), prepare_codes8_short(), prepare_attend()}) {
    if (code == cudaSuccess) continue;
    return Error{ErrorCode::kUnsupported,
                 std::string("GPU: making kernels ready: ") + cudaGetErrorString(code)};
  }
  return ok_status();
}

}  // namespace pagoda::kernels::cuda
