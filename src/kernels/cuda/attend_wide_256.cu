#include "kernels/cuda/attend_wide.cuh"
#include "kernels/cuda/attention_kernels.cuh"

namespace pagoda::kernels::cuda {

void attend_wide_256(const Attend& job, Stream stream) {
  if (job.pages.layout.element == kv::memory::Element::kBF16) {
    return launch_wide_of<256, true>(job, stream);
  }
  launch_wide_of<256, false>(job, stream);
}

cudaError_t prepare_wide_256() {
  const cudaError_t code = prepare_wide_of<256, true>();
  return code == cudaSuccess ? prepare_wide_of<256, false>() : code;
}

}  // namespace pagoda::kernels::cuda
