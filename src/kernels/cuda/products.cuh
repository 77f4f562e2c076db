// The kernels of products, those of each form compiled in a file of its own.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {

void bf16(const Product& job, Stream stream);
void codes4(const Product& job, Stream stream);
void codes4_minimum(const Product& job, Stream stream);
void codes8(const Product& job, Stream stream);
void codes8_short(const Product& job, Stream stream);

cudaError_t prepare_bf16();
cudaError_t prepare_codes4();
cudaError_t prepare_codes4_minimum();
cudaError_t prepare_codes8();
cudaError_t prepare_codes8_short();
cudaError_t prepare_attend();

}  // namespace pagoda::kernels::cuda
