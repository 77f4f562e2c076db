#include "kernels/cuda/attend_shared.cuh"
#include "kernels/cuda/attention_kernels.cuh"

namespace pagoda::kernels::cuda {
namespace {

template <bool kBrain>
void launch(const Attend& job, Stream stream) {
  if (job.share) return launch_shared_of<256, kBrain>(job, stream);
  launch_attend_of<256, kBrain>(job, stream);
}

}  // namespace

void attend_256(const Attend& job, Stream stream) {
  if (job.pages.layout.element == kv::memory::Element::kBF16) return launch<true>(job, stream);
  launch<false>(job, stream);
}

cudaError_t prepare_attend_256() {
  for (const cudaError_t code : {prepare_attend_of<256, true>(), prepare_attend_of<256, false>(),
                                 prepare_shared_of<256, true>(), prepare_shared_of<256, false>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
