#include "kernels/cuda/attention/attention_kernels.cuh"
#include "kernels/cuda/attention/paged_attention.cuh"

namespace pagoda::kernels::cuda {

void paged_attention_64(const PagedAttention& job, StreamHandle stream) {
  switch (job.pages.layout.element) {
    case Element::kBF16:
      return launch_paged_attention_of<Element::kBF16, 64>(job, stream);
    case Element::kE4M3:
      return launch_paged_attention_of<Element::kE4M3, 64>(job, stream);
    default:
      return launch_paged_attention_of<Element::kF16, 64>(job, stream);
  }
}

cudaError_t prepare_paged_attention_64() {
  for (const cudaError_t code : {prepare_paged_attention_of<Element::kBF16, 64>(),
                                 prepare_paged_attention_of<Element::kE4M3, 64>(),
                                 prepare_paged_attention_of<Element::kF16, 64>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
