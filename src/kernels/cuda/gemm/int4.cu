#include "kernels/cuda/gemm/gemm_kernels.cuh"
#include "kernels/cuda/gemm/quant_gemm.cuh"

namespace pagoda::kernels::cuda {

void int4_gemm(const Gemm& job, StreamHandle stream) {
  quant_gemm<WeightFormat::kInt4>(job, stream);
}
cudaError_t prepare_int4_gemm() { return prepare_quant_gemm<WeightFormat::kInt4>(); }

}  // namespace pagoda::kernels::cuda
