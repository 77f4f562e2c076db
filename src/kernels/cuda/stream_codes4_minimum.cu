#include "kernels/cuda/products.cuh"
#include "kernels/cuda/stream_product.cuh"

namespace pagoda::kernels::cuda {

void stream_codes4_minimum(const Product& job, Stream stream) {
  launch_stream_of<Form::kCodes4Minimum>(job, stream);
}
cudaError_t prepare_stream_codes4_minimum() { return prepare_stream<Form::kCodes4Minimum>(); }

}  // namespace pagoda::kernels::cuda
