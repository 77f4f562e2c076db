#include "kernels/cuda/gemm/gemm_kernels.cuh"
#include "kernels/cuda/gemm/quant_gemm.cuh"

namespace pagoda::kernels::cuda {

void int8_group16_gemm(const Gemm& job, StreamHandle stream) {
  quant_gemm<WeightFormat::kInt8Group16>(job, stream);
}
cudaError_t prepare_int8_group16_gemm() { return prepare_quant_gemm<WeightFormat::kInt8Group16>(); }

}  // namespace pagoda::kernels::cuda
