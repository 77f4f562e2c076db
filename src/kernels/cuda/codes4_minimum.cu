#include "kernels/cuda/code_products.cuh"
#include "kernels/cuda/products.cuh"

namespace pagoda::kernels::cuda {

void codes4_minimum(const Product& job, Stream stream) {
  multiply_codes<Form::kCodes4Minimum>(job, stream);
}
cudaError_t prepare_codes4_minimum() { return prepare_codes<Form::kCodes4Minimum>(); }

}  // namespace pagoda::kernels::cuda
