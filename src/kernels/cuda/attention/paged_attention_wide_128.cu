#include "kernels/cuda/attention/attention_kernels.cuh"
#include "kernels/cuda/attention/paged_attention_wide.cuh"

namespace pagoda::kernels::cuda {

void paged_attention_wide_128(const PagedAttention& job, StreamHandle stream) {
  if (job.pages.layout.element == kv::memory::Element::kBF16) {
    return launch_paged_attention_wide_of<128, true>(job, stream);
  }
  launch_paged_attention_wide_of<128, false>(job, stream);
}

cudaError_t prepare_paged_attention_wide_128() {
  const cudaError_t code = prepare_paged_attention_wide_of<128, true>();
  return code == cudaSuccess ? prepare_paged_attention_wide_of<128, false>() : code;
}

}  // namespace pagoda::kernels::cuda
