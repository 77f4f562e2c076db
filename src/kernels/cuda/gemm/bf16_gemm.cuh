// The GEMM of bf16 weights for any number of rows: persistent and warp-specialised, by wgmma.
//
// A block computes output tiles of kTokens rows of the batch by kTiles row tiles of weights, one
// after the other: while the epilogue stores one, the next one's chunks are copied. Four producer
// warps copy stages of kChunks chunks of both factors into a ring; a consumer warpgroup for each 64
// rows of the batch multiplies them. Rows of the batch are the left factor, so that weight rows,
// the right factor, may be as few as keep all processors busy. Where the batch has fewer than 64
// rows the left factor reads on into the memory that follows, and those sums are not stored.
#pragma once

#include "kernels/cuda/gemm/epilogue.cuh"
#include "kernels/cuda/gemm/group_job.cuh"
#include "kernels/cuda/gemm/tile_scheduler.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"
#include "kernels/cuda/ptx/warp_specialization.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

namespace pagoda::kernels::cuda {

template <int kTokens, int kTiles, int kChunksOfStage>
struct Bf16GemmShape {
  static constexpr std::uint32_t kRingBytes = 221184;  // all shared memory but for barriers
  static constexpr std::uint32_t kGroups = kTokens <= 64 ? 1 : kTokens / 64;
  static constexpr std::uint32_t kChunks = kChunksOfStage;
  static constexpr std::uint32_t kActivationBytes = kTokens * 128;  // of a chunk
  static constexpr std::uint32_t kChunkBytes = kActivationBytes + kTiles * 2048;
  static constexpr std::uint32_t kStageBytes = kChunks * kChunkBytes;
  static constexpr std::uint32_t kStages = kRingBytes / kStageBytes;
  static constexpr std::uint32_t kReadOn = kTokens < 64 ? 8192 : 0;
  static constexpr std::uint32_t kProducerWarps = 4;
  static constexpr std::uint32_t kThreads = kGroups * 128 + kProducerWarps * 32;
  // A warpgroup that sums 256 weight rows needs more registers than an even share.
  static constexpr bool kReallocRegisters = kTiles == 16;
  static constexpr std::uint32_t kSharedBytes =
      kStages * kStageBytes + kReadOn + 2 * kStages * 8 + 1024;
  // No warp may be more than a ring ahead of another: a barrier tells only two phases apart.
  static_assert(kStages >= kProducerWarps && kChunks * (kTiles + 1) <= 32);
};

struct SmemRing {
  std::byte* stages;
  std::uint64_t* full;   // [stages]
  std::uint64_t* empty;  // [stages]
};

// A producer warp copies every kProducerWarps-th stage. A lane copies the chunk of one row tile, or
// that of the batch.
template <class Shape, int kTokens, int kTiles>
class Bf16Producer {
 public:
  __device__ __forceinline__ Bf16Producer(const Gemm& job, const SmemRing& ring)
      : job_(job),
        ring_(ring),
        lane_(threadIdx.x % 32),
        chunk_(lane_ / (kTiles + 1)),
        piece_(lane_ % (kTiles + 1)),
        chunks_(chunks_of(job.weight.columns)),
        row_blocks_((job.rows + 7) / 8) {}

  __device__ __forceinline__ void run(const TileScheduler<kTokens, kTiles>& rounds) {
    const std::uint32_t stages = (chunks_ + Shape::kChunks - 1) / Shape::kChunks;  // of a round
    std::uint32_t next = threadIdx.x / 32 % Shape::kProducerWarps;
    if (rounds.count() > 0) {
      begin(rounds[0]);
      // Weights are copied before pdl_wait(): the launch before does not write them.
      const std::uint32_t ahead = min(Shape::kStages, stages);
      for (std::uint32_t i = next; i < ahead; i += Shape::kProducerWarps) {
        expect(i, i);
        if (!of_batch()) copy(i, i);
      }
      pdl_wait();
      for (; next < ahead; next += Shape::kProducerWarps) {
        if (of_batch()) copy(next, next);
      }
    }
    for (std::uint32_t round = 0; round < rounds.count(); ++round) {
      if (round > 0) begin(rounds[round]);
      const std::uint32_t first = round * stages;
      for (; next < first + stages; next += Shape::kProducerWarps) {
        const std::uint32_t slot = next % Shape::kStages;
        const std::uint32_t turn = next / Shape::kStages;
        if (turn > 0) mbarrier_wait(&ring_.empty[slot], (turn + 1) % 2);
        expect(next - first, slot);
        copy(next - first, slot);
      }
    }
  }

 private:
  __device__ __forceinline__ bool of_batch() const { return piece_ == kTiles; }

  __device__ __forceinline__ void begin(const WorkTile& round) {
    if (chunk_ >= Shape::kChunks) {
      bytes_ = 0;
    } else if (of_batch()) {
      const std::uint32_t row_block = round.batch * (kTokens / 8);
      bytes_ = min(kTokens / 8u, row_blocks_ - row_block) * 1024;
      stride_ = row_blocks_ * 1024;
      from_ = reinterpret_cast<const std::byte*>(job_.x) + std::size_t{row_block} * 1024;
    } else {
      bytes_ = piece_ < round.tiles ? 2048 : 0;
      stride_ = 2048;
      from_ = job_.weight.data + std::size_t{round.tile + piece_} * chunks_ * 2048;
    }
    from_ += std::size_t{chunk_} * stride_;
  }
  __device__ __forceinline__ std::uint32_t bytes_of(std::uint32_t stage) const {
    return stage * Shape::kChunks + chunk_ < chunks_ ? bytes_ : 0;
  }
  __device__ __forceinline__ void expect(std::uint32_t stage, std::uint32_t slot) const {
    const std::uint32_t all = __reduce_add_sync(~0u, bytes_of(stage));
    if (lane_ == 0) mbarrier_arrive_expect_tx(&ring_.full[slot], all);
    __syncwarp();
  }
  __device__ __forceinline__ void copy(std::uint32_t stage, std::uint32_t slot) const {
    const std::uint32_t bytes = bytes_of(stage);
    if (bytes == 0) return;
    std::byte* const to = ring_.stages + slot * Shape::kStageBytes + chunk_ * Shape::kChunkBytes +
                          (of_batch() ? 0 : Shape::kActivationBytes + piece_ * 2048);
    cp_async_bulk(to, from_ + std::size_t{stage} * (Shape::kChunks * stride_), bytes,
                  &ring_.full[slot]);
  }

  const Gemm& job_;
  const SmemRing& ring_;
  std::uint32_t lane_;
  std::uint32_t chunk_;  // of a stage
  std::uint32_t piece_;  // row tile of the round, or kTiles: the batch
  std::uint32_t chunks_;
  std::uint32_t row_blocks_;
  const std::byte* from_ = nullptr;  // of the first stage
  std::uint32_t stride_ = 0;         // from chunk to chunk
  std::uint32_t bytes_ = 0;
};

template <class Shape, int kTiles>
__device__ __forceinline__ void multiply_chunk(float (&sum)[kTiles * 2][4],
                                               const std::byte* chunk) {
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    wgmma(sum, smem_descriptor(chunk + threadIdx.x / 128 * 8192 + step * 256),
          smem_descriptor(chunk + Shape::kActivationBytes + step * 256));
  }
}

// A consumer warpgroup multiplies every stage, and releases it when the next one is under way.
template <class Shape, int kTiles>
__device__ __forceinline__ void multiply_round(const SmemRing& ring, std::uint32_t chunks,
                                               std::uint32_t& slot, std::uint32_t& phase,
                                               float (&sum)[kTiles * 2][4]) {
  std::uint32_t before = slot;
  const auto step_on = [&] {
    before = slot;
    slot = slot + 1 == Shape::kStages ? 0 : slot + 1;
    phase ^= slot == 0 ? 1u : 0u;
  };
  for (std::uint32_t stage = 0; stage < chunks / Shape::kChunks; ++stage) {
    mbarrier_wait(&ring.full[slot], phase);
    wgmma_fence();
#pragma unroll
    for (std::uint32_t c = 0; c < Shape::kChunks; ++c) {
      multiply_chunk<Shape, kTiles>(
          sum, ring.stages + slot * Shape::kStageBytes + c * Shape::kChunkBytes);
    }
    wgmma_commit();
    wgmma_wait<1>();
    if (stage > 0 && threadIdx.x % 128 == 0) mbarrier_arrive(&ring.empty[before]);
    step_on();
  }
  if (const std::uint32_t rest = chunks % Shape::kChunks; rest > 0) {
    mbarrier_wait(&ring.full[slot], phase);
    for (std::uint32_t c = 0; c < rest; ++c) {
      wgmma_fence();
      multiply_chunk<Shape, kTiles>(
          sum, ring.stages + slot * Shape::kStageBytes + c * Shape::kChunkBytes);
      wgmma_commit();
      wgmma_wait<0>();
    }
    if (chunks > rest && threadIdx.x % 128 == 0) mbarrier_arrive(&ring.empty[before]);
    step_on();
  }
  wgmma_wait<0>();
  if (threadIdx.x % 128 == 0) mbarrier_arrive(&ring.empty[before]);
}

// The tiles of one block among those that share a product.
template <int kTokens, int kTiles, int kChunks>
__device__ __forceinline__ void multiply_tiles(const Gemm& job, std::byte* raw) {
  using Shape = Bf16GemmShape<kTokens, kTiles, kChunks>;
  std::byte* const stages = raw + (1024 - smem_address(raw) % 1024) % 1024;
  auto* const full = reinterpret_cast<std::uint64_t*>(stages + Shape::kStages * Shape::kStageBytes +
                                                      Shape::kReadOn);
  const SmemRing ring = {stages, full, full + Shape::kStages};
  if (threadIdx.x == 0) {
    for (std::uint32_t i = 0; i < Shape::kStages; ++i) {
      mbarrier_init(&ring.full[i], 1);
      mbarrier_init(&ring.empty[i], Shape::kGroups);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  pdl_trigger();
  const TileScheduler<kTokens, kTiles> rounds(job);
  if (threadIdx.x >= Shape::kGroups * 128) {
    if constexpr (Shape::kReallocRegisters) setmaxnreg_dec<40>();
    Bf16Producer<Shape, kTokens, kTiles>(job, ring).run(rounds);
    return;
  }
  if constexpr (Shape::kReallocRegisters) setmaxnreg_inc<232>();
  std::uint32_t slot = 0;
  std::uint32_t phase = 0;
  for (std::uint32_t round = 0; round < rounds.count(); ++round) {
    float sum[kTiles * 2][4];
#pragma unroll
    for (auto& fragment : sum) {
      for (float& value : fragment) value = 0;
    }
    multiply_round<Shape, kTiles>(ring, chunks_of(job.weight.columns), slot, phase, sum);
    if (round == 0) pdl_wait();
    const WorkTile now = rounds[round];
    const std::uint32_t row = threadIdx.x / 32 * 16;  // of the block's
    if (row < kTokens) run_epilogue_rows(job, now.batch * kTokens + row, now.tile, now.tiles, sum);
  }
}

template <int kTokens, int kTiles, int kChunks>
__global__ void __launch_bounds__(Bf16GemmShape<kTokens, kTiles, kChunks>::kThreads, 1)
    bf16_gemm_kernel(Gemm job) {
  extern __shared__ std::byte raw[];
  multiply_tiles<kTokens, kTiles, kChunks>(job, raw);
}

// Block (x, y) takes tiles of group y.
template <int kTokens, int kTiles, int kChunks>
__global__ void __launch_bounds__(Bf16GemmShape<kTokens, kTiles, kChunks>::kThreads, 1)
    grouped_bf16_gemm_kernel(const __grid_constant__ GroupedGemm all) {
  extern __shared__ std::byte raw[];
  pdl_wait();
  const Gemm job = gemm_of_group(all, blockIdx.y);
  if (job.rows == 0) return;
  multiply_tiles<kTokens, kTiles, kChunks>(job, raw);
}

template <int kTokens, int kTiles, int kChunks>
void launch_bf16_gemm(const Gemm& job, cudaStream_t stream) {
  using Shape = Bf16GemmShape<kTokens, kTiles, kChunks>;
  launch_kernel(bf16_gemm_kernel<kTokens, kTiles, kChunks>, dim3(kSmCount), Shape::kThreads,
                Shape::kSharedBytes, stream, job);
}

template <int kTokens, int kTiles, int kChunks>
void launch_grouped_bf16_gemm(const GroupedGemm& job, cudaStream_t stream) {
  using Shape = Bf16GemmShape<kTokens, kTiles, kChunks>;
  launch_kernel(grouped_bf16_gemm_kernel<kTokens, kTiles, kChunks>, grouped_grid(job),
                Shape::kThreads, Shape::kSharedBytes, stream, job);
}

}  // namespace pagoda::kernels::cuda
