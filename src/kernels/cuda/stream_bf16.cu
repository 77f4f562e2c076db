#include "kernels/cuda/products.cuh"
#include "kernels/cuda/stream_product.cuh"

namespace pagoda::kernels::cuda {

void stream_bf16(const Product& job, Stream stream) { launch_stream_of<Form::kBf16>(job, stream); }
cudaError_t prepare_stream_bf16() { return prepare_stream<Form::kBf16>(); }

}  // namespace pagoda::kernels::cuda
