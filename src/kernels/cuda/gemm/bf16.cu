#include "kernels/cuda/gemm/bf16_gemm.cuh"
#include "kernels/cuda/gemm/gemm_kernels.cuh"

namespace pagoda::kernels::cuda {
namespace {

std::uint32_t tiles_each(const Gemm& job) {
  return (row_tiles(job.weight.rows) + kSmCount - 1) / kSmCount;
}

// The time of a GEMM with `tiles` row tiles a block, in units of copied chunks: with many rows of
// the batch the L2 cache's bandwidth is the limit.
std::uint32_t cost(const Gemm& job, std::uint32_t tiles) {
  const std::uint32_t items =
      (job.rows + 127) / 128 * ((row_tiles(job.weight.rows) + tiles - 1) / tiles);
  return (items + kSmCount - 1) / kSmCount * (tiles + 8);
}

}  // namespace

void bf16_gemm(const Gemm& job, StreamHandle stream) {
  const std::uint32_t each = tiles_each(job);
  if (job.rows <= 8) {
    if (each <= 2) return launch_bf16_gemm<8, 2, 4>(job, stream);
    return launch_bf16_gemm<8, 4, 2>(job, stream);
  }
  if (job.rows <= 16) {
    if (each <= 2) return launch_bf16_gemm<16, 2, 4>(job, stream);
    return launch_bf16_gemm<16, 4, 2>(job, stream);
  }
  if (job.rows <= 64) {
    if (each <= 2) return launch_bf16_gemm<64, 2, 2>(job, stream);
    if (each <= 4) return launch_bf16_gemm<64, 4, 1>(job, stream);
    return launch_bf16_gemm<64, 8, 1>(job, stream);
  }
  if (job.rows <= 128) {
    if (each <= 2) return launch_bf16_gemm<64, 4, 1>(job, stream);
    if (each <= 4) return launch_bf16_gemm<128, 4, 1>(job, stream);
    return launch_bf16_gemm<128, 8, 1>(job, stream);
  }
  const std::uint32_t four = cost(job, 4);
  const std::uint32_t eight = cost(job, 8);
  const std::uint32_t sixteen = cost(job, 16);
  if (sixteen <= eight && sixteen <= four) return launch_bf16_gemm<128, 16, 1>(job, stream);
  if (eight <= four) return launch_bf16_gemm<128, 8, 1>(job, stream);
  launch_bf16_gemm<128, 4, 1>(job, stream);
}

void grouped_bf16_gemm(const GroupedGemm& job, StreamHandle stream) {
  if (job.gemm.rows <= 8) return launch_grouped_bf16_gemm<8, 4, 2>(job, stream);
  if (job.gemm.rows <= 16) return launch_grouped_bf16_gemm<16, 4, 2>(job, stream);
  launch_grouped_bf16_gemm<64, 8, 1>(job, stream);
}

template <int kTokens, int kTiles, int kChunks>
cudaError_t prepare_bf16_gemm_shape() {
  return allow_dynamic_smem(bf16_gemm_kernel<kTokens, kTiles, kChunks>,
                            Bf16GemmShape<kTokens, kTiles, kChunks>::kSharedBytes);
}
template <int kTokens, int kTiles, int kChunks>
cudaError_t prepare_grouped_shape() {
  return allow_dynamic_smem(grouped_bf16_gemm_kernel<kTokens, kTiles, kChunks>,
                            Bf16GemmShape<kTokens, kTiles, kChunks>::kSharedBytes);
}

cudaError_t prepare_bf16_gemm() {
  for (const cudaError_t code :
       {prepare_bf16_gemm_shape<8, 2, 4>(), prepare_bf16_gemm_shape<8, 4, 2>(),
        prepare_bf16_gemm_shape<16, 2, 4>(), prepare_bf16_gemm_shape<16, 4, 2>(),
        prepare_bf16_gemm_shape<64, 2, 2>(), prepare_bf16_gemm_shape<64, 4, 1>(),
        prepare_bf16_gemm_shape<64, 8, 1>(), prepare_bf16_gemm_shape<128, 4, 1>(),
        prepare_bf16_gemm_shape<128, 8, 1>(), prepare_bf16_gemm_shape<128, 16, 1>(),
        prepare_grouped_shape<8, 4, 2>(), prepare_grouped_shape<16, 4, 2>(),
        prepare_grouped_shape<64, 8, 1>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
