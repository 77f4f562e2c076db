#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kThreads = 128;

// A block takes one row of the batch. Layers and pages are multiples of 16 bytes.
__global__ void __launch_bounds__(kThreads) clear_unused(ClearUnused job) {
  pdl_trigger();
  pdl_wait();
  const kv::memory::PageLayout& layout = job.pages.layout;
  const BatchToken batch_token = job.batch_tokens[blockIdx.x];
  if (batch_token.position == kNoPosition || batch_token.position % layout.block_tokens != 0) {
    return;
  }
  const std::uint32_t block = batch_token.position / layout.block_tokens;
  const std::uint32_t page =
      job.pages.tables[job.sequences[batch_token.sequence].table_index(block)];
  auto* const unused = reinterpret_cast<uint4*>(
      job.pages.data + std::size_t{page + 1} * layout.page_bytes() - layout.unused_bytes);
  for (std::uint32_t i = threadIdx.x; i < layout.unused_bytes / sizeof(uint4); i += kThreads) {
    unused[i] = make_uint4(0, 0, 0, 0);
  }
}

}  // namespace

void launch_clear_unused(const ClearUnused& job, StreamHandle stream) {
  launch_kernel(clear_unused, dim3(job.rows), kThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda
