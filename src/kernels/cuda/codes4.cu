#include "kernels/cuda/code_products.cuh"
#include "kernels/cuda/products.cuh"

namespace pagoda::kernels::cuda {

void codes4(const Product& job, Stream stream) { multiply_codes<Form::kCodes4>(job, stream); }
cudaError_t prepare_codes4() { return prepare_codes<Form::kCodes4>(); }

}  // namespace pagoda::kernels::cuda
