// The attention kernels, which CMake has compiled for one head size a file
// (attention_instance.cu.in).
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {

// kDim is 64, 128 or 256. The prepare functions are called once, before the first launch. False:
// the cache's elements have no kernel of their own.
template <int kDim>
bool launch_paged_attention_of(const PagedAttention& job, StreamHandle stream);
template <int kDim>
cudaError_t prepare_paged_attention_of();

template <int kDim>
bool launch_paged_attention_wide_of(const PagedAttention& job, StreamHandle stream);
template <int kDim>
cudaError_t prepare_paged_attention_wide_of();

cudaError_t prepare_general_attention();

// All of these, and the kernel that merges splits.
cudaError_t prepare_attention();

}  // namespace pagoda::kernels::cuda
