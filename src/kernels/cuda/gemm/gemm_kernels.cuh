// The GEMM kernels, those of each weight format compiled in a file of its own.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {

void bf16_gemm(const Gemm& job, StreamHandle stream);
void int4_gemm(const Gemm& job, StreamHandle stream);
void int4_min_gemm(const Gemm& job, StreamHandle stream);
void int8_gemm(const Gemm& job, StreamHandle stream);
void int8_group16_gemm(const Gemm& job, StreamHandle stream);

cudaError_t prepare_bf16_gemm();
cudaError_t prepare_int4_gemm();
cudaError_t prepare_int4_min_gemm();
cudaError_t prepare_int8_gemm();
cudaError_t prepare_int8_group16_gemm();
cudaError_t prepare_attention();

}  // namespace pagoda::kernels::cuda
