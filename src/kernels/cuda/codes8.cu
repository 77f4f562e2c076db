#include "kernels/cuda/code_products.cuh"
#include "kernels/cuda/products.cuh"

namespace pagoda::kernels::cuda {

void codes8(const Product& job, Stream stream) { multiply_codes<Form::kCodes8>(job, stream); }
cudaError_t prepare_codes8() { return prepare_codes<Form::kCodes8>(); }

}  // namespace pagoda::kernels::cuda
