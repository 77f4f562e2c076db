// Which kernels multiply. Those of a format all give the same bits.
#include "kernels/cuda/gemm/gemm_kernels.cuh"

namespace pagoda::kernels::cuda {

void launch_gemm(const Gemm& job, StreamHandle stream) {
  switch (job.weight.format) {
    case WeightFormat::kBf16:
      return bf16_gemm(job, stream);
    case WeightFormat::kInt4:
      return quant_gemm<WeightFormat::kInt4>(job, stream);
    case WeightFormat::kInt4Min:
      return quant_gemm<WeightFormat::kInt4Min>(job, stream);
    case WeightFormat::kInt8:
      return quant_gemm<WeightFormat::kInt8>(job, stream);
    case WeightFormat::kInt8Group16:
      return quant_gemm<WeightFormat::kInt8Group16>(job, stream);
    case WeightFormat::kFp4:
      return quant_gemm<WeightFormat::kFp4>(job, stream);
  }
}

void launch_grouped_gemm(const GroupedGemm& job, StreamHandle stream) {
  switch (job.gemm.weight.format) {
    case WeightFormat::kBf16:
      return grouped_bf16_gemm(job, stream);
    case WeightFormat::kInt4:
      return grouped_quant_gemm<WeightFormat::kInt4>(job, stream);
    case WeightFormat::kInt4Min:
      return grouped_quant_gemm<WeightFormat::kInt4Min>(job, stream);
    case WeightFormat::kInt8:
      return grouped_quant_gemm<WeightFormat::kInt8>(job, stream);
    case WeightFormat::kInt8Group16:
      return grouped_quant_gemm<WeightFormat::kInt8Group16>(job, stream);
    case WeightFormat::kFp4:
      return grouped_quant_gemm<WeightFormat::kFp4>(job, stream);
  }
}

cudaError_t prepare_gemm() {
  for (const cudaError_t code :
       {prepare_bf16_gemm(), prepare_quant_gemm<WeightFormat::kInt4>(),
        prepare_quant_gemm<WeightFormat::kInt4Min>(), prepare_quant_gemm<WeightFormat::kInt8>(),
        prepare_quant_gemm<WeightFormat::kInt8Group16>(),
        prepare_quant_gemm<WeightFormat::kFp4>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
