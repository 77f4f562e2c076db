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

// Block (x, y) copies one head of keys or of values of one layer (x), of copy y. The heads of keys
// come before those of values, as in a page, and their scales stand in the same order.
__global__ void __launch_bounds__(kThreads) copy_rows(const __grid_constant__ CopyBatch batch) {
  pdl_trigger();
  pdl_wait();
  const kv::memory::PageLayout& layout = batch.layout;
  const BlockCopy copy = batch.copies[blockIdx.y];
  const std::uint32_t layer = blockIdx.x / (2 * layout.kv_heads);
  const std::uint32_t head = blockIdx.x % (2 * layout.kv_heads);
  const std::byte* const from = batch.pages + std::size_t{copy.from} * layout.page_bytes();
  std::byte* const to = batch.pages + std::size_t{copy.to} * layout.page_bytes();
  const std::size_t rows = layout.key_offset(layer, head, 0);  // both kinds have the same row bytes
  const std::uint32_t vectors = copy.tokens * layout.key_row_bytes() / sizeof(uint4);
  for (std::uint32_t i = threadIdx.x; i < vectors; i += kThreads) {
    reinterpret_cast<uint4*>(to + rows)[i] = reinterpret_cast<const uint4*>(from + rows)[i];
  }
  if (scale_bytes(layout.element) == 0) return;
  const std::size_t scales = layout.key_scale_offset(layer, head, 0);
  for (std::uint32_t i = threadIdx.x; i < copy.tokens; i += kThreads) {
    reinterpret_cast<std::uint16_t*>(to + scales)[i] =
        reinterpret_cast<const std::uint16_t*>(from + scales)[i];
  }
}

}  // namespace

void launch_copy_rows(const CopyRows& job, StreamHandle stream) {
  CopyBatch batch = {.pages = job.pages, .layout = job.layout, .copies = {}};
  for (std::size_t begin = 0; begin < job.copies.size(); begin += kCopiesPerLaunch) {
    const auto part = job.copies.subspan(
        begin, std::min<std::size_t>(kCopiesPerLaunch, job.copies.size() - begin));
    std::copy(part.begin(), part.end(), batch.copies);
    launch_kernel(
        copy_rows,
        dim3(job.layout.layers * 2 * job.layout.kv_heads, static_cast<std::uint32_t>(part.size())),
        kThreads, 0, stream, batch);
  }
}

}  // namespace pagoda::kernels::cuda
