#include "kernels/cuda/products.cuh"
#include "kernels/cuda/stream_product.cuh"

namespace pagoda::kernels::cuda {

void stream_codes8(const Product& job, Stream stream) {
  launch_stream_of<Form::kCodes8>(job, stream);
}
cudaError_t prepare_stream_codes8() { return prepare_stream<Form::kCodes8>(); }

}  // namespace pagoda::kernels::cuda
