#include "kernels/cuda/attend.cuh"
#include "kernels/cuda/attention_kernels.cuh"

namespace pagoda::kernels::cuda {

void attend_256(const Attend& job, Stream stream) {
  if (job.pages.layout.element == kv::memory::Element::kBF16) {
    return launch_attend_of<256, true>(job, stream);
  }
  launch_attend_of<256, false>(job, stream);
}

cudaError_t prepare_attend_256() {
  const cudaError_t code = prepare_attend_of<256, true>();
  return code != cudaSuccess ? code : prepare_attend_of<256, false>();
}

}  // namespace pagoda::kernels::cuda
