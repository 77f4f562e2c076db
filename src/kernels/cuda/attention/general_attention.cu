#include "kernels/cuda/attention/attention_kernels.cuh"
#include "kernels/cuda/attention/general_attention.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr int kSharedMax = 227 * 1024;  // of a block

int shared_bytes_of(const GeneralShape& shape, int slots) {
  return static_cast<int>(sizeof(GeneralShared)) + shape.shared_bytes(slots);
}

// Kernels of few units hold less in registers, so that two blocks fit on a processor.
constexpr int units_of_warp(const GeneralShape& shape) {
  return (shape.value_units + kGeneralWarps - 1) / kGeneralWarps;
}

template <bool kBf16Keys, bool kBf16Values, int kSlots, int kUnits>
void launch_with(const PagedAttention& job, const GeneralShape& shape, StreamHandle stream) {
  const float slope = job.cap > 0 ? soft_cap_slope(job.scale, job.cap) : 0.0f;
  launch_kernel(general_attention<kBf16Keys, kBf16Values, kSlots, kUnits>,
                dim3(job.items_max, job.pages.layout.kv_heads), kGeneralThreads,
                static_cast<std::uint32_t>(shared_bytes_of(shape, kSlots)), stream, job, shape,
                slope);
}

template <bool kBf16Keys, bool kBf16Values>
void launch_of_factors(const PagedAttention& job, StreamHandle stream) {
  const GeneralShape shape = GeneralShape::of(job.pages.layout);
  const auto fits = [&](int slots) { return shared_bytes_of(shape, slots) <= kSharedMax; };
  if (units_of_warp(shape) == 1 && fits(4)) {
    return launch_with<kBf16Keys, kBf16Values, 4, 1>(job, shape, stream);
  }
  if (units_of_warp(shape) <= 2 && fits(4)) {
    return launch_with<kBf16Keys, kBf16Values, 4, 2>(job, shape, stream);
  }
  if (fits(3)) return launch_with<kBf16Keys, kBf16Values, 3, 4>(job, shape, stream);
  launch_with<kBf16Keys, kBf16Values, 2, 4>(job, shape, stream);
}

template <bool kBf16Keys, bool kBf16Values>
cudaError_t prepare_of_factors() {
  for (const cudaError_t code :
       {allow_dynamic_smem(general_attention<kBf16Keys, kBf16Values, 4, 1>, kSharedMax),
        allow_dynamic_smem(general_attention<kBf16Keys, kBf16Values, 4, 2>, kSharedMax),
        allow_dynamic_smem(general_attention<kBf16Keys, kBf16Values, 3, 4>, kSharedMax),
        allow_dynamic_smem(general_attention<kBf16Keys, kBf16Values, 2, 4>, kSharedMax)}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace

void launch_general_attention(const PagedAttention& job, StreamHandle stream) {
  const kv::memory::Elements elements = job.pages.layout.elements;
  if (!is_bf16_factor(elements.keys)) return launch_of_factors<false, false>(job, stream);
  if (is_bf16_factor(elements.values)) return launch_of_factors<true, true>(job, stream);
  launch_of_factors<true, false>(job, stream);
}

cudaError_t prepare_general_attention() {
  for (const cudaError_t code :
       {prepare_of_factors<false, false>(), prepare_of_factors<true, true>(),
        prepare_of_factors<true, false>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
