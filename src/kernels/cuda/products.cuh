// The kernels of products, each compiled in a file of its own.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {

void stream_bf16(const Product& job, Stream stream);
void stream_codes4(const Product& job, Stream stream);
void stream_codes4_minimum(const Product& job, Stream stream);
void stream_codes8(const Product& job, Stream stream);
void stream_codes8_short(const Product& job, Stream stream);
// Many rows.
void tiles_bf16(const Product& job, Stream stream);
cudaError_t prepare_tiles_bf16();
cudaError_t prepare_stream_bf16();
cudaError_t prepare_stream_codes4();
cudaError_t prepare_stream_codes4_minimum();
cudaError_t prepare_stream_codes8();
cudaError_t prepare_stream_codes8_short();
cudaError_t prepare_attend();

}  // namespace pagoda::kernels::cuda
