// The GEMM kernels, those of each weight format compiled in a file of its own.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/expert_ops.h"
#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {

void bf16_gemm(const Gemm& job, StreamHandle stream);
void grouped_bf16_gemm(const GroupedGemm& job, StreamHandle stream);
cudaError_t prepare_bf16_gemm();

// Quantised weights; CMake has these compiled for one format a file (quant_gemm_instance.cu.in).
template <WeightFormat kFormat>
void quant_gemm(const Gemm& job, StreamHandle stream);
template <WeightFormat kFormat>
void grouped_quant_gemm(const GroupedGemm& job, StreamHandle stream);
template <WeightFormat kFormat>
cudaError_t prepare_quant_gemm();

// All of these: once, before the first launch.
cudaError_t prepare_gemm();

}  // namespace pagoda::kernels::cuda
