#include "kernels/cuda/attend.cuh"
#include "kernels/cuda/attention_kernels.cuh"

namespace pagoda::kernels::cuda {

void attend_128(const Attend& job, Stream stream) {
  if (job.pages.layout.element == kv::memory::Element::kBF16) {
    return launch_attend_of<128, true>(job, stream);
  }
  launch_attend_of<128, false>(job, stream);
}

cudaError_t prepare_attend_128() {
  const cudaError_t code = prepare_attend_of<128, true>();
  return code != cudaSuccess ? code : prepare_attend_of<128, false>();
}

}  // namespace pagoda::kernels::cuda
