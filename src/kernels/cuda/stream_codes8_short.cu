#include "kernels/cuda/products.cuh"
#include "kernels/cuda/stream_product.cuh"

namespace pagoda::kernels::cuda {

void stream_codes8_short(const Product& job, Stream stream) {
  launch_stream_of<Form::kCodes8Short>(job, stream);
}
cudaError_t prepare_stream_codes8_short() { return prepare_stream<Form::kCodes8Short>(); }

}  // namespace pagoda::kernels::cuda
