#include "kernels/cuda/attention/attention_kernels.cuh"
#include "kernels/cuda/attention/paged_attention.cuh"

namespace pagoda::kernels::cuda {

void paged_attention_128(const PagedAttention& job, StreamHandle stream) {
  switch (job.pages.layout.element) {
    case Element::kBF16:
      return launch_paged_attention_of<Element::kBF16, 128>(job, stream);
    case Element::kE4M3:
      return launch_paged_attention_of<Element::kE4M3, 128>(job, stream);
    default:
      return launch_paged_attention_of<Element::kF16, 128>(job, stream);
  }
}

cudaError_t prepare_paged_attention_128() {
  for (const cudaError_t code : {prepare_paged_attention_of<Element::kBF16, 128>(),
                                 prepare_paged_attention_of<Element::kE4M3, 128>(),
                                 prepare_paged_attention_of<Element::kF16, 128>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
