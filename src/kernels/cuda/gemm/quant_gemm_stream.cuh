// The GEMM of quantised weights with few rows (decode): bound by the reading of weights.
//
// A block owns row tiles and takes two at a time; each of its eight warps sums one part of K for
// both. A warp streams its chunks, and those of the batch, through a ring of its own in shared
// memory: bytes in flight cost no registers, and no warp waits for another until the parts are
// added. The launch before does not write weights, so their copies begin before it has ended.
#pragma once

#include "kernels/cuda/gemm/epilogue.cuh"
#include "kernels/cuda/gemm/group_job.cuh"
#include "kernels/cuda/gemm/quantised_weights.cuh"
#include "kernels/cuda/launch.cuh"

namespace pagoda::kernels::cuda {

// kBatch is 1, 8 or 16 rows.
template <WeightFormat kFormat, int kBatch>
struct QuantStreamShape {
  static constexpr std::uint32_t kWarps = kSplitK;
  static constexpr std::uint32_t kThreads = kWarps * 32;
  static constexpr int kTiles = kBatch > 8 ? 2 : 1;  // of eight rows of the batch
  static constexpr std::uint32_t kChunkBytes = chunk_bytes(kFormat);
  static constexpr std::uint32_t kSlotBytes = 2 * kChunkBytes + kBatch * 128;
  static constexpr std::uint32_t kSlots = 26000 / kSlotBytes;
  static constexpr std::uint32_t kAhead = kSlots - 1;
  static constexpr std::uint32_t kRingBytes = kSlots * kSlotBytes;
  static constexpr std::uint32_t kExchangeBytes = kWarps * 2 * kTiles * 32 * 16;
  static constexpr std::uint32_t kSharedBytes = kWarps * kRingBytes + kExchangeBytes;
};

// The place in the weights that a warp copies next: it takes the chunks of its part of K, of one
// pair of row tiles after the other.
struct WeightCursor {
  const std::byte* weights;      // chunk of the first tile
  const std::byte* activations;  // the batch's, of the same chunk
  std::uint32_t tiles;           // left
  std::uint32_t chunks;          // left of these tiles
};

// One warp's ring of chunks in shared memory.
template <WeightFormat kFormat, int kBatch>
class WeightRing {
  using Shape = QuantStreamShape<kFormat, kBatch>;

 public:
  __device__ __forceinline__ WeightRing(const Gemm& job, std::byte* ring, std::uint32_t part,
                                        std::uint32_t first, std::uint32_t count)
      : ring_(ring),
        tile_bytes_(std::size_t{chunks_of(job.weight.columns)} * Shape::kChunkBytes),
        activation_stride_((job.rows + 7) / 8 * 1024) {
    const std::uint32_t all = chunks_of(job.weight.columns);
    const std::uint32_t begin = split_k_begin(all, part);
    chunks_ = split_k_begin(all, part + 1) - begin;
    cursor_ = {job.weight.data + first * tile_bytes_ + begin * Shape::kChunkBytes,
               reinterpret_cast<const std::byte*>(job.x) + std::size_t{begin} * activation_stride_,
               chunks_ > 0 ? count : 0, chunks_};
  }

  __device__ __forceinline__ std::uint32_t chunks() const { return chunks_; }

  __device__ __forceinline__ void begin() {
    const WeightCursor start = cursor_;
    for (std::uint32_t slot = 0; slot < Shape::kAhead; ++slot) copy_weights(slot), advance();
    cursor_ = start;
    pdl_wait();
    for (std::uint32_t slot = 0; slot < Shape::kAhead; ++slot) {
      copy_activations(slot);
      cp_async_commit();
      advance();
    }
    next_ = Shape::kAhead % Shape::kSlots;
  }

  // Waits for the oldest chunk that was not taken yet, for the whole warp. The chunk taken before
  // it is overwritten.
  __device__ __forceinline__ const std::byte* take() {
    cp_async_wait<Shape::kAhead - 1>();
    __syncwarp();
    copy_weights(next_);
    copy_activations(next_);
    cp_async_commit();
    advance();
    next_ = next_ + 1 == Shape::kSlots ? 0 : next_ + 1;
    const std::byte* const slot = ring_ + taken_ * Shape::kSlotBytes;
    taken_ = taken_ + 1 == Shape::kSlots ? 0 : taken_ + 1;
    return slot;
  }

 private:
  __device__ __forceinline__ void copy_weights(std::uint32_t slot) const {
    std::byte* const to = ring_ + slot * Shape::kSlotBytes;
#pragma unroll
    for (std::uint32_t tile = 0; tile < 2; ++tile) {
#pragma unroll
      for (std::uint32_t unit = 0; unit < Shape::kChunkBytes; unit += 512) {
        const std::uint32_t at = unit + threadIdx.x % 32 * 16;
        if (tile >= cursor_.tiles || at >= Shape::kChunkBytes) continue;
        cp_async_16(smem_address(to + tile * Shape::kChunkBytes + at),
                    cursor_.weights + tile * tile_bytes_ + at);
      }
    }
  }
  // Copies activations as [8 blocks][row] where there is one row, else as they stand in memory:
  // [8 rows][8 blocks][row].
  __device__ __forceinline__ void copy_activations(std::uint32_t slot) const {
    if (cursor_.tiles == 0) return;
    std::byte* const to = ring_ + slot * Shape::kSlotBytes + 2 * Shape::kChunkBytes;
#pragma unroll
    for (std::uint32_t i = threadIdx.x % 32; i < kBatch * 8; i += 32) {
      cp_async_16(smem_address(to + i * 16), cursor_.activations + i * (kBatch == 1 ? 128 : 16));
    }
  }
  __device__ __forceinline__ void advance() {
    if (cursor_.tiles == 0) return;
    cursor_.weights += Shape::kChunkBytes;
    cursor_.activations += activation_stride_;
    if (--cursor_.chunks > 0) return;
    cursor_.chunks = chunks_;
    cursor_.tiles -= min(2u, cursor_.tiles);
    cursor_.weights += 2 * tile_bytes_ - chunks_ * Shape::kChunkBytes;
    cursor_.activations -= std::size_t{chunks_} * activation_stride_;
  }

  std::byte* ring_;
  std::size_t tile_bytes_;
  std::uint32_t activation_stride_;
  std::uint32_t chunks_ = 0;  // of the part
  std::uint32_t next_ = 0;    // slot to fill
  std::uint32_t taken_ = 0;
  WeightCursor cursor_ = {};
};

// The right factor of a step: two registers for each eight rows of the batch.
template <int kBatch>
struct FragmentB {
  static constexpr int kTiles = kBatch > 8 ? 2 : 1;
  std::uint32_t b[kTiles][2];

  // Where the batch has one row, all eight are that row.
  __device__ __forceinline__ FragmentB(const std::byte* x, int step) {
    const std::uint32_t lane = threadIdx.x % 32;
    constexpr std::uint32_t kBlock = kBatch == 1 ? 16 : 128;
    const std::byte* const at =
        x + 2 * step * kBlock + (kBatch == 1 ? 0 : lane / 4 * 16) + lane % 4 * 4;
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      b[n][0] = *reinterpret_cast<const std::uint32_t*>(at + n * 1024);
      b[n][1] = *reinterpret_cast<const std::uint32_t*>(at + n * 1024 + kBlock);
    }
  }
};

template <int kTiles, int kBatch>
__device__ __forceinline__ void multiply_step(float (&sum)[kTiles][4], const std::uint32_t (&a)[4],
                                              const FragmentB<kBatch>& x) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) mma_bf16(sum[n], a, x.b[n][0], x.b[n][1]);
}

// Adds one chunk of two row tiles. Where there is one tile alone, the second is whatever the ring
// holds and is not stored: without branches, loads, unpacking and products of both overlap.
template <WeightFormat kFormat, int kBatch, int kTiles>
__device__ __forceinline__ void add_chunk(float (&sum)[2][kTiles][4], const std::byte* slot) {
  using Weights = QuantisedWeights<kFormat>;
  Weights weights[2];
  weights[0].read(slot);
  weights[1].read(slot + chunk_bytes(kFormat));
  const std::byte* const x = slot + 2 * chunk_bytes(kFormat);
  constexpr std::uint32_t kOnes[4] = {kTwoOnes, kTwoOnes, kTwoOnes, kTwoOnes};
#pragma unroll
  for (int group = 0; group < Weights::kGroups; ++group) {
    float u[2][kTiles][4] = {};
    float ones[kTiles][4] = {};
#pragma unroll
    for (int step = group * Weights::kSteps; step < (group + 1) * Weights::kSteps; ++step) {
      const FragmentB<kBatch> right(x, step);
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        std::uint32_t a[4];
        weights[tile].unpack(step, a);
        multiply_step(u[tile], a, right);
      }
      if constexpr (Weights::kHasMinima) multiply_step(ones, kOnes, right);
    }
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
      add_scaled(sum[tile], u[tile], weights[tile].scale(group));
      if constexpr (Weights::kHasMinima) add_scaled(sum[tile], ones, weights[tile].minimum(group));
    }
  }
}

// Adds up the eight parts of both tiles. All warps store theirs, [warp][tile][n][lane]; the first
// two warps add them and run the epilogue, of a tile each.
template <int kTiles>
__device__ __forceinline__ void add_parts(const Gemm& job, std::uint32_t tile, bool both,
                                          const float (&sum)[2][kTiles][4], float4* exchange) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < 2 * kTiles; ++i) {
    const float(&from)[4] = sum[i / kTiles][i % kTiles];
    exchange[(warp * 2 * kTiles + i) * 32 + lane] = make_float4(from[0], from[1], from[2], from[3]);
  }
  __syncthreads();
  if (warp == 0 || (warp == 1 && both)) {
    float all[kTiles][4];
#pragma unroll
    for (std::uint32_t part = 0; part < kSplitK; ++part) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const float4 own = exchange[((part * 2 + warp) * kTiles + n) * 32 + lane];
        all[n][0] = part == 0 ? own.x : all[n][0] + own.x;
        all[n][1] = part == 0 ? own.y : all[n][1] + own.y;
        all[n][2] = part == 0 ? own.z : all[n][2] + own.z;
        all[n][3] = part == 0 ? own.w : all[n][3] + own.w;
      }
    }
    run_epilogue(job, tile + warp, 0, all);
  }
  __syncthreads();
}

// The row tiles of one block among those that share a product.
template <WeightFormat kFormat, int kBatch>
__device__ __forceinline__ void stream_row_tiles(const Gemm& job, std::byte* shared) {
  using Shape = QuantStreamShape<kFormat, kBatch>;
  auto* const exchange = reinterpret_cast<float4*>(shared + Shape::kWarps * Shape::kRingBytes);
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint64_t tiles = row_tiles(job.weight.rows);
  const auto first = static_cast<std::uint32_t>(tiles * blockIdx.x / gridDim.x);
  const auto count = static_cast<std::uint32_t>(tiles * (blockIdx.x + 1) / gridDim.x) - first;
  WeightRing<kFormat, kBatch> ring(job, shared + warp * Shape::kRingBytes, warp, first, count);
  ring.begin();
  for (std::uint32_t tile = 0; tile < count; tile += 2) {
    const bool both = tile + 1 < count;
    float sum[2][Shape::kTiles][4] = {};
    for (std::uint32_t chunk = 0; chunk < ring.chunks(); ++chunk) {
      add_chunk<kFormat, kBatch>(sum, ring.take());
    }
    add_parts(job, first + tile, both, sum, exchange);
  }
}

template <WeightFormat kFormat, int kBatch>
__global__ void __launch_bounds__(QuantStreamShape<kFormat, kBatch>::kThreads, 1)
    quant_gemm_stream(Gemm job) {
  extern __shared__ __align__(128) std::byte shared[];
  pdl_trigger();
  stream_row_tiles<kFormat, kBatch>(job, shared);
}

// Block (x, y) takes row tiles of group y.
template <WeightFormat kFormat, int kBatch>
__global__ void __launch_bounds__(QuantStreamShape<kFormat, kBatch>::kThreads, 1)
    grouped_gemm_stream(const __grid_constant__ GroupedGemm all) {
  extern __shared__ __align__(128) std::byte shared[];
  pdl_trigger();
  pdl_wait();
  const Gemm job = gemm_of_group(all, blockIdx.y);
  if (job.rows == 0 || job.rows > kBatch) return;  // larger ones are another launch's
  stream_row_tiles<kFormat, kBatch>(job, shared);
}

template <WeightFormat kFormat, int kBatch>
void launch_quant_gemm_stream(const Gemm& job, cudaStream_t stream) {
  using Shape = QuantStreamShape<kFormat, kBatch>;
  launch_kernel(quant_gemm_stream<kFormat, kBatch>, dim3(min(kSmCount, row_tiles(job.weight.rows))),
                Shape::kThreads, Shape::kSharedBytes, stream, job);
}

template <WeightFormat kFormat, int kBatch>
void launch_grouped_gemm_stream(const GroupedGemm& job, cudaStream_t stream) {
  using Shape = QuantStreamShape<kFormat, kBatch>;
  launch_kernel(grouped_gemm_stream<kFormat, kBatch>, grouped_grid(job), Shape::kThreads,
                Shape::kSharedBytes, stream, job);
}

}  // namespace pagoda::kernels::cuda
