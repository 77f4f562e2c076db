#include "kernels/cuda/code_products.cuh"
#include "kernels/cuda/products.cuh"

namespace pagoda::kernels::cuda {

void codes8_short(const Product& job, Stream stream) {
  multiply_codes<Form::kCodes8Short>(job, stream);
}
cudaError_t prepare_codes8_short() { return prepare_codes<Form::kCodes8Short>(); }

}  // namespace pagoda::kernels::cuda
