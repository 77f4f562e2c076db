#include "kernels/cuda/products.cuh"
#include "kernels/cuda/stream_product.cuh"

namespace pagoda::kernels::cuda {

void stream_codes4(const Product& job, Stream stream) {
  launch_stream_of<Form::kCodes4>(job, stream);
}
cudaError_t prepare_stream_codes4() { return prepare_stream<Form::kCodes4>(); }

}  // namespace pagoda::kernels::cuda
