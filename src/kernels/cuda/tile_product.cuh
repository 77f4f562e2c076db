// Products of many rows: bound by the tensor cores.
//
// A block computes 64 * kGroups weight rows by kBatch rows of the batch. One warp copies chunks of
// 64 columns of both into a ring, kGroups warpgroups multiply them where they landed. kCluster
// blocks that share rows of the batch copy a part of them each, for all: without that the
// second-level cache cannot feed the tensor cores.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/product_finish.cuh"
#include "kernels/cuda/tensor_core.cuh"
#include "kernels/cuda/warpgroup.cuh"

namespace pagoda::kernels::cuda {

template <int kBatch, int kGroups, int kCluster>
struct TileShape {
  static constexpr std::uint32_t kWeightBytes = kGroups * 4 * 2048;
  static constexpr std::uint32_t kOperandBytes = kBatch / 8 * 1024;
  static constexpr std::uint32_t kStageBytes = kWeightBytes + kOperandBytes;
  static constexpr std::uint32_t kStages = 196608 / kStageBytes;
  static constexpr std::uint32_t kSharedBytes = kStages * kStageBytes + 2 * kStages * 8 + 1024;
  static constexpr std::uint32_t kThreads = kGroups * 128 + 32;
};

struct TileRing {
  std::byte* stages;
  std::uint64_t* full;   // [stages]
  std::uint64_t* empty;  // [stages]: of all blocks of the cluster
};

// The copying warp: every lane takes some of a stage's pieces.
template <class Shape, int kBatch, int kGroups, int kCluster>
__device__ __forceinline__ void copy_tiles(const Product& job, const TileRing& ring) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t chunks = chunks_of(job.weight.columns);
  const std::uint32_t first_tile = blockIdx.y * kGroups * 4;
  const std::uint32_t first_batch = blockIdx.x * (kBatch / 8);
  const std::uint32_t all_tiles = row_tiles(job.weight.rows);
  const std::uint32_t tiles =
      first_tile < all_tiles ? min(kGroups * 4u, all_tiles - first_tile) : 0;
  const std::uint32_t eights = min(kBatch / 8u, (job.rows + 7) / 8 - first_batch);
  const std::uint32_t rank = kCluster > 1 ? block_in_cluster() : 0;
  const auto copy_weights = [&](std::uint32_t chunk) {
    std::byte* const stage = ring.stages + chunk % Shape::kStages * Shape::kStageBytes;
    std::uint64_t* const barrier = &ring.full[chunk % Shape::kStages];
    if (lane == 0) arrive_and_expect(barrier, tiles * 2048 + eights * 1024);
    __syncwarp();
    if (lane < tiles) {
      copy_bulk(stage + lane * 2048,
                job.weight.data + (std::size_t{first_tile + lane} * chunks + chunk) * 2048, 2048,
                barrier);
    }
  };
  // All rows of a chunk stand together: one copy, or one by each block of the cluster for all.
  const std::uint32_t share = (eights + kCluster - 1) / kCluster;
  const std::uint32_t mine = min(rank * share, eights);
  const std::uint32_t bytes = (min(mine + share, eights) - mine) * 1024;
  const std::size_t chunk_stride = std::size_t{(job.rows + 7) / 8} * 1024;
  const std::byte* const from =
      reinterpret_cast<const std::byte*>(job.x) + (first_batch + mine) * 1024;
  const auto copy_operand = [&](std::uint32_t chunk) {
    if (lane != 0 || bytes == 0) return;
    std::byte* const stage = ring.stages + chunk % Shape::kStages * Shape::kStageBytes;
    std::uint64_t* const barrier = &ring.full[chunk % Shape::kStages];
    std::byte* const to = stage + Shape::kWeightBytes + mine * 1024;
    if constexpr (kCluster > 1) {
      copy_bulk_to_all(to, from + chunk * chunk_stride, bytes, barrier, (1u << kCluster) - 1);
    } else {
      copy_bulk(to, from + chunk * chunk_stride, bytes, barrier);
    }
  };
  // Weights do not depend on the launch before.
  const std::uint32_t ahead = min(Shape::kStages, chunks);
  for (std::uint32_t chunk = 0; chunk < ahead; ++chunk) copy_weights(chunk);
  wait_for_launch_before();
  for (std::uint32_t chunk = 0; chunk < ahead; ++chunk) copy_operand(chunk);
  for (std::uint32_t chunk = ahead; chunk < chunks; ++chunk) {
    wait_phase(&ring.empty[chunk % Shape::kStages], (chunk / Shape::kStages + 1) % 2);
    copy_weights(chunk);
    copy_operand(chunk);
  }
}

// A warpgroup: multiplies every chunk and gives its stage back, here and to the blocks that also
// copy into it.
template <class Shape, int kBatch, int kCluster>
__device__ __forceinline__ void multiply_tiles(const Product& job, const TileRing& ring,
                                               float (&sum)[kBatch / 8][4]) {
  const std::uint32_t chunks = chunks_of(job.weight.columns);
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const std::byte* const stage = ring.stages + chunk % Shape::kStages * Shape::kStageBytes;
    wait_phase(&ring.full[chunk % Shape::kStages], chunk / Shape::kStages % 2);
    begin_products();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      multiply_group(sum, side_at(stage + threadIdx.x / 128 * 8192 + step * 256),
                     side_at(stage + Shape::kWeightBytes + step * 256));
    }
    commit_products();
    wait_products<1>();
    if (chunk == 0 || threadIdx.x % 128 >= kCluster) continue;
    std::uint64_t* const given = &ring.empty[(chunk - 1) % Shape::kStages];
    if constexpr (kCluster > 1) {
      arrive_at(given, threadIdx.x % 128);
    } else {
      arrive(given);
    }
  }
  wait_products<0>();
}

template <int kBatch, int kGroups, int kCluster>
__global__ void __launch_bounds__(TileShape<kBatch, kGroups, kCluster>::kThreads, 1)
    tile_product(Product job) {
  using Shape = TileShape<kBatch, kGroups, kCluster>;
  extern __shared__ std::byte raw[];
  std::byte* const stages = raw + (1024 - shared_address(raw) % 1024) % 1024;
  auto* const full = reinterpret_cast<std::uint64_t*>(stages + Shape::kStages * Shape::kStageBytes);
  const TileRing ring = {stages, full, full + Shape::kStages};
  if (threadIdx.x == 0) {
    for (std::uint32_t i = 0; i < Shape::kStages; ++i) {
      init_barrier(&ring.full[i], 1);
      init_barrier(&ring.empty[i], kGroups * kCluster);
    }
    publish_barriers();
  }
  __syncthreads();
  if constexpr (kCluster > 1) meet_cluster();
  let_next_launch_begin();
  if (threadIdx.x >= kGroups * 128) {
    copy_tiles<Shape, kBatch, kGroups, kCluster>(job, ring);
  } else {
    float sum[kBatch / 8][4];
#pragma unroll
    for (auto& fragment : sum) {
      for (float& value : fragment) value = 0;
    }
    multiply_tiles<Shape, kBatch, kCluster>(job, ring, sum);
    wait_for_launch_before();
    finish_fragments(job, blockIdx.y * kGroups * 4 + threadIdx.x / 32, blockIdx.x * (kBatch / 8),
                     sum);
  }
  // Others may still copy here or arrive at barriers here.
  if constexpr (kCluster > 1) {
    __syncwarp();
    meet_cluster();
  }
}

template <int kBatch, int kGroups, int kCluster>
void launch_tiles(const Product& job, cudaStream_t stream) {
  using Shape = TileShape<kBatch, kGroups, kCluster>;
  constexpr std::uint32_t kTiles = kGroups * 4 * kCluster;
  const dim3 grid((job.rows + kBatch - 1) / kBatch,
                  (row_tiles(job.weight.rows) + kTiles - 1) / kTiles * kCluster);
  launch_clusters(tile_product<kBatch, kGroups, kCluster>, grid, kCluster, Shape::kThreads,
                  Shape::kSharedBytes, stream, job);
}

template <int kBatch, int kGroups, int kCluster>
cudaError_t prepare_tiles() {
  return cudaFuncSetAttribute(tile_product<kBatch, kGroups, kCluster>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              TileShape<kBatch, kGroups, kCluster>::kSharedBytes);
}

}  // namespace pagoda::kernels::cuda
