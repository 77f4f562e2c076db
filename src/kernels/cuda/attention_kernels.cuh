// The kernels of attention, one head size a file.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {

void attend_64(const Attend& job, Stream stream);
void attend_128(const Attend& job, Stream stream);
void attend_256(const Attend& job, Stream stream);
void attend_wide_64(const Attend& job, Stream stream);
void attend_wide_128(const Attend& job, Stream stream);
void attend_wide_256(const Attend& job, Stream stream);
cudaError_t prepare_attend_64();
cudaError_t prepare_attend_128();
cudaError_t prepare_attend_256();
cudaError_t prepare_wide_64();
cudaError_t prepare_wide_128();
cudaError_t prepare_wide_256();

}  // namespace pagoda::kernels::cuda
