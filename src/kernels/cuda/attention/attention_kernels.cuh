// The kernels of attention, one head size a file.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {

void paged_attention_64(const PagedAttention& job, StreamHandle stream);
void paged_attention_128(const PagedAttention& job, StreamHandle stream);
void paged_attention_256(const PagedAttention& job, StreamHandle stream);
void paged_attention_wide_64(const PagedAttention& job, StreamHandle stream);
void paged_attention_wide_128(const PagedAttention& job, StreamHandle stream);
void paged_attention_wide_256(const PagedAttention& job, StreamHandle stream);
cudaError_t prepare_paged_attention_64();
cudaError_t prepare_paged_attention_128();
cudaError_t prepare_paged_attention_256();
cudaError_t prepare_paged_attention_wide_64();
cudaError_t prepare_paged_attention_wide_128();
cudaError_t prepare_paged_attention_wide_256();

}  // namespace pagoda::kernels::cuda
