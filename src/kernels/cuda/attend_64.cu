#include "kernels/cuda/attend.cuh"
#include "kernels/cuda/attention_kernels.cuh"

namespace pagoda::kernels::cuda {

void attend_64(const Attend& job, Stream stream) {
  switch (job.pages.layout.element) {
    case Element::kBF16:
      return launch_attend_of<Element::kBF16, 64>(job, stream);
    case Element::kE4M3:
      return launch_attend_of<Element::kE4M3, 64>(job, stream);
    default:
      return launch_attend_of<Element::kF16, 64>(job, stream);
  }
}

cudaError_t prepare_attend_64() {
  for (const cudaError_t code :
       {prepare_attend_of<Element::kBF16, 64>(), prepare_attend_of<Element::kE4M3, 64>(),
        prepare_attend_of<Element::kF16, 64>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
