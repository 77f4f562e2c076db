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

template <Element kElement, int kSlots, int kUnits>
void launch_with(const PagedAttention& job, const GeneralShape& shape, StreamHandle stream) {
  const float slope = job.cap > 0 ? soft_cap_slope(job.scale, job.cap) : 0.0f;
  launch_kernel(general_attention<kElement, kSlots, kUnits>,
                dim3(job.items_max, job.pages.layout.kv_heads), kGeneralThreads,
                static_cast<std::uint32_t>(shared_bytes_of(shape, kSlots)), stream, job, shape,
                slope);
}

template <Element kElement>
void launch_of_element(const PagedAttention& job, StreamHandle stream) {
  const GeneralShape shape = GeneralShape::of(job.pages.layout);
  const auto fits = [&](int slots) { return shared_bytes_of(shape, slots) <= kSharedMax; };
  if (units_of_warp(shape) == 1 && fits(4)) return launch_with<kElement, 4, 1>(job, shape, stream);
  if (units_of_warp(shape) <= 2 && fits(4)) return launch_with<kElement, 4, 2>(job, shape, stream);
  if (fits(3)) return launch_with<kElement, 3, 4>(job, shape, stream);
  launch_with<kElement, 2, 4>(job, shape, stream);
}

template <Element kElement>
cudaError_t prepare_of_element() {
  for (const cudaError_t code :
       {allow_dynamic_smem(general_attention<kElement, 4, 1>, kSharedMax),
        allow_dynamic_smem(general_attention<kElement, 4, 2>, kSharedMax),
        allow_dynamic_smem(general_attention<kElement, 3, 4>, kSharedMax),
        allow_dynamic_smem(general_attention<kElement, 2, 4>, kSharedMax)}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace

void launch_general_attention(const PagedAttention& job, StreamHandle stream) {
  switch (job.pages.layout.elements.keys) {
    case Element::kBF16:
      return launch_of_element<Element::kBF16>(job, stream);
    case Element::kE4M3:
      return launch_of_element<Element::kE4M3>(job, stream);
    default:
      return launch_of_element<Element::kF16>(job, stream);
  }
}

cudaError_t prepare_general_attention() {
  for (const cudaError_t code :
       {prepare_of_element<Element::kBF16>(), prepare_of_element<Element::kE4M3>(),
        prepare_of_element<Element::kF16>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
