#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kThreads = 128;

struct CopyBatch {
  std::byte* pages;
  kv::memory::PageLayout layout;
  BlockCopy copies[kCopiesPerLaunch];
};

// Copies `bytes`, a multiple of 16, at one offset.
__device__ __forceinline__ void copy_vectors(std::byte* to, const std::byte* from,
                                             std::size_t bytes) {
  for (std::uint32_t i = threadIdx.x; i < bytes / sizeof(uint4); i += kThreads) {
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  }
}

// Heads of keys, and of values where those stand apart, of all layers.
__host__ __device__ constexpr std::uint32_t heads_of_page(const kv::memory::PageLayout& layout) {
  return layout.layers * (layout.values_in_keys ? 1 : 2) * layout.kv_heads;
}

// Block (x, y) copies one head of keys or of values of one layer (x), of copy y; the last one what
// the page leaves unused. The heads of keys come before those of values.
__global__ void __launch_bounds__(kThreads) copy_rows(const __grid_constant__ CopyBatch batch) {
  pdl_trigger();
  pdl_wait();
  const kv::memory::PageLayout& layout = batch.layout;
  const BlockCopy copy = batch.copies[blockIdx.y];
  const std::byte* const from = batch.pages + std::size_t{copy.from} * layout.page_bytes();
  std::byte* const to = batch.pages + std::size_t{copy.to} * layout.page_bytes();
  if (blockIdx.x == heads_of_page(layout)) {
    const std::size_t used = layout.page_bytes() - layout.unused_bytes;
    return copy_vectors(to + used, from + used, layout.unused_bytes);
  }
  const std::uint32_t heads_each = heads_of_page(layout) / layout.layers;
  const std::uint32_t layer = blockIdx.x / heads_each;
  const std::uint32_t head = blockIdx.x % heads_each;
  const bool is_key = head < layout.kv_heads;
  const std::uint32_t own = is_key ? head : head - layout.kv_heads;
  const std::size_t rows =
      is_key ? layout.key_offset(layer, own, 0) : layout.value_offset(layer, own, 0);
  const std::size_t row_bytes = is_key ? layout.key_row_bytes() : layout.value_row_bytes();
  copy_vectors(to + rows, from + rows, copy.tokens * row_bytes);
  const std::size_t scales =
      is_key ? layout.key_scale_offset(layer, own, 0) : layout.value_scale_offset(layer, own, 0);
  const std::size_t groups = (is_key ? layout.key_scale_bytes() : layout.value_scale_bytes()) / 2;
  for (std::uint32_t i = threadIdx.x; i < groups * copy.tokens; i += kThreads) {
    const std::size_t at = scales + i / copy.tokens * layout.scale_step() + i % copy.tokens * 2;
    *reinterpret_cast<std::uint16_t*>(to + at) = *reinterpret_cast<const std::uint16_t*>(from + at);
  }
}

}  // namespace

void launch_copy_rows(const CopyRows& job, StreamHandle stream) {
  CopyBatch batch = {.pages = job.pages, .layout = job.layout, .copies = {}};
  for (std::size_t begin = 0; begin < job.copies.size(); begin += kCopiesPerLaunch) {
    const auto part = job.copies.subspan(
        begin, std::min<std::size_t>(kCopiesPerLaunch, job.copies.size() - begin));
    std::copy(part.begin(), part.end(), batch.copies);
    const std::uint32_t blocks = heads_of_page(job.layout) + (job.layout.unused_bytes > 0 ? 1 : 0);
    launch_kernel(copy_rows, dim3(blocks, static_cast<std::uint32_t>(part.size())), kThreads, 0,
                  stream, batch);
  }
}

}  // namespace pagoda::kernels::cuda
