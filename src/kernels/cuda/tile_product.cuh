// Products of many rows: bound by the tensor cores.
//
// A block computes 64 * kGroups weight rows by kBatch rows of the batch. One warp copies chunks of
// 64 columns of both into a ring, kGroups warpgroups multiply them where they landed.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/product_finish.cuh"
#include "kernels/cuda/tensor_core.cuh"
#include "kernels/cuda/warpgroup.cuh"

namespace pagoda::kernels::cuda {

template <int kBatch, int kGroups>
struct TileShape {
  static constexpr std::uint32_t kWeightBytes = kGroups * 4 * 2048;
  static constexpr std::uint32_t kOperandBytes = kBatch / 8 * 1024;
  static constexpr std::uint32_t kStageBytes = kWeightBytes + kOperandBytes;
  static constexpr std::uint32_t kStages = kStageBytes > 40960 ? 4 : 196608 / kStageBytes;
  static constexpr std::uint32_t kSharedBytes = kStages * kStageBytes + 2 * kStages * 8 + 1024;
  static constexpr std::uint32_t kThreads = kGroups * 128 + 32;
};

// The copying warp: every lane takes some of a stage's pieces.
template <int kBatch, int kGroups>
__device__ __forceinline__ void copy_tiles(const Product& job, std::byte* ring, std::uint64_t* full,
                                           std::uint64_t* empty) {
  using Shape = TileShape<kBatch, kGroups>;
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t chunks = chunks_of(job.weight.columns);
  const std::uint32_t first_tile = blockIdx.y * kGroups * 4;
  const std::uint32_t first_batch = blockIdx.x * (kBatch / 8);
  const std::uint32_t tiles = min(kGroups * 4u, row_tiles(job.weight.rows) - first_tile);
  const std::uint32_t eights = min(kBatch / 8u, (job.rows + 7) / 8 - first_batch);
  const auto* const x = reinterpret_cast<const std::byte*>(job.x);
  const auto copy_weights = [&](std::uint32_t chunk) {
    std::byte* const stage = ring + chunk % Shape::kStages * Shape::kStageBytes;
    std::uint64_t* const barrier = &full[chunk % Shape::kStages];
    if (lane == 0) arrive_and_expect(barrier, tiles * 2048 + eights * 1024);
    __syncwarp();
    if (lane < tiles) {
      copy_bulk(stage + lane * 2048,
                job.weight.data + (std::size_t{first_tile + lane} * chunks + chunk) * 2048, 2048,
                barrier);
    }
  };
  const auto copy_operand = [&](std::uint32_t chunk) {
    std::byte* const stage = ring + chunk % Shape::kStages * Shape::kStageBytes;
    for (std::uint32_t i = lane; i < eights; i += 32) {
      copy_bulk(stage + Shape::kWeightBytes + i * 1024,
                x + (std::size_t{first_batch + i} * chunks + chunk) * 1024, 1024,
                &full[chunk % Shape::kStages]);
    }
  };
  // Weights do not depend on the launch before.
  const std::uint32_t ahead = min(Shape::kStages, chunks);
  for (std::uint32_t chunk = 0; chunk < ahead; ++chunk) copy_weights(chunk);
  wait_for_launch_before();
  for (std::uint32_t chunk = 0; chunk < ahead; ++chunk) copy_operand(chunk);
  for (std::uint32_t chunk = ahead; chunk < chunks; ++chunk) {
    wait_phase(&empty[chunk % Shape::kStages], (chunk / Shape::kStages + 1) % 2);
    copy_weights(chunk);
    copy_operand(chunk);
  }
}

template <int kBatch, int kGroups>
__global__ void __launch_bounds__(TileShape<kBatch, kGroups>::kThreads, 1)
    tile_product(Product job) {
  using Shape = TileShape<kBatch, kGroups>;
  extern __shared__ std::byte raw[];
  std::byte* const ring = raw + (1024 - shared_address(raw) % 1024) % 1024;
  auto* const full = reinterpret_cast<std::uint64_t*>(ring + Shape::kStages * Shape::kStageBytes);
  std::uint64_t* const empty = full + Shape::kStages;
  if (threadIdx.x == 0) {
    for (std::uint32_t i = 0; i < Shape::kStages; ++i) {
      init_barrier(&full[i], 1);
      init_barrier(&empty[i], kGroups);
    }
    publish_barriers();
  }
  __syncthreads();
  let_next_launch_begin();
  if (threadIdx.x >= kGroups * 128) {
    copy_tiles<kBatch, kGroups>(job, ring, full, empty);
    return;
  }
  float sum[kBatch / 8][4];
#pragma unroll
  for (auto& fragment : sum) {
    for (float& value : fragment) value = 0;
  }
  const std::uint32_t chunks = chunks_of(job.weight.columns);
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const std::byte* const stage = ring + chunk % Shape::kStages * Shape::kStageBytes;
    wait_phase(&full[chunk % Shape::kStages], chunk / Shape::kStages % 2);
    begin_products();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      multiply_group(sum, side_at(stage + threadIdx.x / 128 * 8192 + step * 256),
                     side_at(stage + Shape::kWeightBytes + step * 256));
    }
    commit_products();
    wait_products<1>();
    if (chunk > 0 && threadIdx.x % 128 == 0) arrive(&empty[(chunk - 1) % Shape::kStages]);
  }
  wait_products<0>();
  wait_for_launch_before();
  const std::uint32_t tile = blockIdx.y * kGroups * 4 + threadIdx.x / 32;
#pragma unroll
  for (int n = 0; n < kBatch / 8; ++n) {
    finish_fragment(job, tile, blockIdx.x * (kBatch / 8) + n, sum[n]);
  }
}

template <int kBatch, int kGroups>
void launch_tiles(const Product& job, cudaStream_t stream) {
  using Shape = TileShape<kBatch, kGroups>;
  const dim3 grid((job.rows + kBatch - 1) / kBatch,
                  (row_tiles(job.weight.rows) + kGroups * 4 - 1) / (kGroups * 4));
  launch_kernel(tile_product<kBatch, kGroups>, grid, Shape::kThreads, Shape::kSharedBytes, stream,
                job);
}

template <int kBatch, int kGroups>
cudaError_t prepare_tiles() {
  return cudaFuncSetAttribute(tile_product<kBatch, kGroups>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              TileShape<kBatch, kGroups>::kSharedBytes);
}

}  // namespace pagoda::kernels::cuda
