// The GEMM of quantised weights with many rows (prefill), by wgmma with weights from registers.
//
// A warpgroup holds 64 weight rows as factors in its registers, unpacked from codes in shared
// memory, and multiplies them with kBatch rows of the batch in shared memory. With few rows of the
// batch there are few blocks, so kWays warpgroups share 64 weight rows and take their own parts of
// K; with many, one takes all parts and kRowGroups warpgroups take other weight rows.
#pragma once

#include "kernels/cuda/gemm/epilogue.cuh"
#include "kernels/cuda/gemm/group_job.cuh"
#include "kernels/cuda/gemm/quantised_weights.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx/warp_specialization.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

namespace pagoda::kernels::cuda {

template <WeightFormat kFormat, int kRowGroups, int kWays, int kBatch>
struct QuantWgmmaShape {
  static constexpr std::uint32_t kGroups = kRowGroups * kWays;  // warpgroups
  static constexpr std::uint32_t kTiles = kRowGroups * 4;
  static constexpr std::uint32_t kChunks = kWays > 1 ? 1 : 2;  // of a way in a stage
  static constexpr std::uint32_t kChunkBytes = chunk_bytes(kFormat);
  static constexpr std::uint32_t kActivationBytes = kBatch * 128;  // of a chunk
  static constexpr std::uint32_t kWayBytes =
      (kChunks * (kActivationBytes + kTiles * kChunkBytes) + 1023) / 1024 * 1024;
  static constexpr std::uint32_t kStageBytes = kWays * kWayBytes;
  static constexpr std::uint32_t kHeldBytes = kGroups * 128 * kBatch / 2 * 4;
  static constexpr std::uint32_t kStages = (225280 - kHeldBytes) / kStageBytes;
  // No warp may be more than a ring ahead of another: a barrier tells only two phases apart.
  static constexpr std::uint32_t kProducerWarps = kStages < 4 ? kStages : 4;
  // Two consumer warpgroups have the registers they need only if the producer warps give some up.
  static constexpr bool kReallocRegisters = kGroups == 2;
  static constexpr std::uint32_t kThreads = (kGroups + 1) * 128;
  static constexpr std::uint32_t kSharedBytes =
      kStages * kStageBytes + kHeldBytes + 2 * kStages * 8 + 1024;
  static_assert(kStages >= 2 && kWays * (kTiles + kChunks) <= 32 && kSplitK % kWays == 0);
};

template <WeightFormat kFormat>
using GroupedWgmmaShape = QuantWgmmaShape<kFormat, 1, 4, static_cast<int>(kLargeRows)>;

// Which part of a product a block computes, in units of its shape.
struct BlockTile {
  std::uint32_t batch_tile;
  std::uint32_t row_group;
};

// The chunks that a way takes.
template <int kWays>
struct WayChunks {
  std::uint32_t begin;
  std::uint32_t end;
  std::uint32_t longest;  // of all ways

  __device__ __forceinline__ WayChunks(std::uint32_t chunks, std::uint32_t way)
      : begin(split_k_begin(chunks, way * (kSplitK / kWays))),
        end(split_k_begin(chunks, (way + 1) * (kSplitK / kWays))),
        longest((chunks + kWays - 1) / kWays) {}
};

// A producer warp copies every kProducerWarps-th stage. A lane copies the codes of one row tile, or
// one chunk of the batch, of one way.
template <WeightFormat kFormat, int kRowGroups, int kWays, int kBatch>
class QuantProducer {
  using Shape = QuantWgmmaShape<kFormat, kRowGroups, kWays, kBatch>;
  static constexpr std::uint32_t kCodePieces = kWays * Shape::kTiles;

 public:
  __device__ __forceinline__ QuantProducer(const Gemm& job, const BlockTile& block,
                                           std::byte* stages)
      : lane_(threadIdx.x % 32),
        codes_(lane_ < kCodePieces),
        way_(codes_ ? lane_ / Shape::kTiles : (lane_ - kCodePieces) / Shape::kChunks % kWays),
        which_(codes_ ? lane_ % Shape::kTiles : (lane_ - kCodePieces) % Shape::kChunks),
        way_chunks_(chunks_of(job.weight.columns), way_) {
    const std::uint32_t chunks = chunks_of(job.weight.columns);
    const std::uint32_t tile = block.row_group * Shape::kTiles + which_;
    const std::uint32_t row_blocks = (job.rows + 7) / 8;
    const std::uint32_t row_block = block.batch_tile * (kBatch / 8);
    if (codes_) {
      from_ = job.weight.data + std::size_t{tile} * chunks * Shape::kChunkBytes;
      stride_ = Shape::kChunkBytes;
      bytes_ = tile < row_tiles(job.weight.rows) ? Shape::kChunkBytes : 0;
      to_ = stages + way_ * Shape::kWayBytes + Shape::kChunks * Shape::kActivationBytes +
            which_ * (Shape::kChunks * Shape::kChunkBytes);
    } else {
      from_ = reinterpret_cast<const std::byte*>(job.x) + std::size_t{row_block} * 1024;
      stride_ = row_blocks * 1024;
      bytes_ = lane_ < kCodePieces + kWays * Shape::kChunks
                   ? min(kBatch / 8u, row_blocks - row_block) * 1024
                   : 0;
      to_ = stages + way_ * Shape::kWayBytes + which_ * Shape::kActivationBytes;
    }
  }

  __device__ __forceinline__ void run(std::uint64_t* full, std::uint64_t* empty) const {
    const std::uint32_t stages = (way_chunks_.longest + Shape::kChunks - 1) / Shape::kChunks;
    const std::uint32_t ahead = min(Shape::kStages, stages);
    std::uint32_t next = threadIdx.x / 32 - Shape::kGroups * 4;
    // Weights are copied before pdl_wait(): the launch before does not write them.
    for (std::uint32_t i = next; i < ahead; i += Shape::kProducerWarps) {
      expect(i, &full[i]);
      if (codes_) copy(i, i, &full[i]);
    }
    pdl_wait();
    for (; next < ahead; next += Shape::kProducerWarps) {
      if (!codes_) copy(next, next, &full[next]);
    }
    for (; next < stages; next += Shape::kProducerWarps) {
      const std::uint32_t slot = next % Shape::kStages;
      mbarrier_wait(&empty[slot], (next / Shape::kStages + 1) % 2);
      expect(next, &full[slot]);
      copy(next, slot, &full[slot]);
    }
  }

 private:
  __device__ __forceinline__ std::uint32_t first_chunk(std::uint32_t stage) const {
    return way_chunks_.begin + stage * Shape::kChunks + (codes_ ? 0 : which_);
  }
  __device__ __forceinline__ std::uint32_t bytes_of(std::uint32_t stage) const {
    const std::uint32_t chunk = first_chunk(stage);
    if (chunk >= way_chunks_.end) return 0;
    return codes_ ? min(Shape::kChunks, way_chunks_.end - chunk) * bytes_ : bytes_;
  }
  __device__ __forceinline__ void expect(std::uint32_t stage, std::uint64_t* full) const {
    const std::uint32_t all = __reduce_add_sync(~0u, bytes_of(stage));
    if (lane_ == 0) mbarrier_arrive_expect_tx(full, all);
    __syncwarp();
  }
  __device__ __forceinline__ void copy(std::uint32_t stage, std::uint32_t slot,
                                       std::uint64_t* full) const {
    const std::uint32_t bytes = bytes_of(stage);
    if (bytes == 0) return;
    cp_async_bulk(to_ + slot * Shape::kStageBytes,
                  from_ + std::size_t{first_chunk(stage)} * stride_, bytes, full);
  }

  std::uint32_t lane_;
  bool codes_;
  std::uint32_t way_;
  std::uint32_t which_;  // tile of the block, or chunk of the stage
  WayChunks<kWays> way_chunks_;
  const std::byte* from_;
  std::byte* to_;
  std::uint32_t stride_;
  std::uint32_t bytes_;  // of a chunk
};

// Adds one chunk of a warp's row tile. While a group is multiplied, the next one's codes are
// unpacked.
template <WeightFormat kFormat, int kBatch>
__device__ __forceinline__ void add_quant_chunk(float (&sum)[kBatch / 8][4], const std::byte* codes,
                                                const std::byte* x) {
  using Weights = QuantisedWeights<kFormat>;
  constexpr int kSteps = Weights::kSteps;
  constexpr std::uint32_t kOnes[4] = {kTwoOnes, kTwoOnes, kTwoOnes, kTwoOnes};
  Weights weights;
  weights.read(codes);
  std::uint32_t a[2][kSteps][4];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) weights.unpack(step, a[0][step]);
#pragma unroll
  for (int group = 0; group < Weights::kGroups; ++group) {
    const std::byte* const right = x + group * kSteps * 256;
    float u[kBatch / 8][4];
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      wgmma(u, a[group % 2][step], smem_descriptor(right + step * 256), step > 0);
    }
    wgmma_commit();
    if (group + 1 < Weights::kGroups) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        weights.unpack((group + 1) * kSteps + step, a[(group + 1) % 2][step]);
      }
    }
    wgmma_wait<0>();
    add_scaled(sum, u, weights.scale(group));
    if constexpr (Weights::kHasMinima) {
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        wgmma(u, kOnes, smem_descriptor(right + step * 256), step > 0);
      }
      wgmma_commit();
      wgmma_wait<0>();
      add_scaled(sum, u, weights.minimum(group));
    }
  }
}

// Sums that a thread keeps in shared memory: value i of thread t is at [i][t].
template <int kThreads>
struct HeldSums {
  float* own;

  template <int kTiles>
  __device__ __forceinline__ void store(float (&sum)[kTiles][4], bool add) const {
#pragma unroll
    for (int i = 0; i < kTiles * 4; ++i) {
      float& held = own[i * kThreads];
      held = add ? held + sum[i / 4][i % 4] : sum[i / 4][i % 4];
      sum[i / 4][i % 4] = 0;
    }
  }
};

// Sums the parts of K of one way. All parts but the last are held in shared memory; where the way
// has all parts, they are added up there.
template <WeightFormat kFormat, int kRowGroups, int kWays, int kBatch>
__device__ __forceinline__ void sum_way(const Gemm& job, const std::byte* stages,
                                        std::uint64_t* full, std::uint64_t* empty,
                                        const HeldSums<kRowGroups * kWays * 128>& held,
                                        float (&sum)[kBatch / 8][4]) {
  using Shape = QuantWgmmaShape<kFormat, kRowGroups, kWays, kBatch>;
  constexpr std::uint32_t kParts = kSplitK / kWays;
  const std::uint32_t way = threadIdx.x / 128 % kWays;
  const std::uint32_t tile = threadIdx.x / 128 / kWays * 4 + threadIdx.x % 128 / 32;
  const std::uint32_t chunks = chunks_of(job.weight.columns);
  const WayChunks<kWays> mine(chunks, way);
  std::uint32_t part = 0;
  const auto end_parts = [&](std::uint32_t chunk) {
    for (; part + 1 < kParts && chunk == split_k_begin(chunks, way * kParts + part + 1); ++part) {
      held.store(sum, part > 0);
    }
  };
  std::uint32_t slot = 0;
  std::uint32_t phase = 0;
  for (std::uint32_t i = 0; i < mine.longest; i += Shape::kChunks) {
    mbarrier_wait(&full[slot], phase);
    const std::byte* const stage = stages + slot * Shape::kStageBytes + way * Shape::kWayBytes;
#pragma unroll
    for (std::uint32_t c = 0; c < Shape::kChunks; ++c) {
      const std::uint32_t chunk = mine.begin + i + c;
      if (chunk >= mine.end) break;
      end_parts(chunk);
      add_quant_chunk<kFormat, kBatch>(sum,
                                       stage + Shape::kChunks * Shape::kActivationBytes +
                                           (tile * Shape::kChunks + c) * Shape::kChunkBytes,
                                       stage + c * Shape::kActivationBytes);
    }
    if (threadIdx.x % 128 == 0) mbarrier_arrive(&empty[slot]);
    slot = slot + 1 == Shape::kStages ? 0 : slot + 1;
    phase ^= slot == 0 ? 1u : 0u;
  }
  end_parts(mine.end);
}

// Adds up the parts of all ways, two each, of which the first is held in shared memory. A way adds
// up its share of the batch and runs the epilogue on it.
template <class Shape, int kWays, int kBatch>
__device__ __forceinline__ void add_ways(const Gemm& job, const BlockTile& block, float* exchange,
                                         const float* held, const float (&sum)[kBatch / 8][4]) {
  static_assert(kSplitK == 2 * kWays);
  constexpr std::uint32_t kThreads = Shape::kGroups * 128;
  constexpr int kMine = kBatch / 8 / kWays;
  const std::uint32_t way = threadIdx.x / 128 % kWays;
  const std::uint32_t first_way = threadIdx.x - way * 128;  // the same thread of it
#pragma unroll
  for (int i = 0; i < kBatch / 2; ++i) exchange[i * kThreads + threadIdx.x] = sum[i / 4][i % 4];
  named_barrier_sync<kThreads>();
  float all[kMine][4];
#pragma unroll
  for (int n = 0; n < kMine; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t at = ((way * kMine + n) * 4 + i) * kThreads + first_way;
#pragma unroll
      for (std::uint32_t other = 0; other < kWays; ++other) {
        const float first = held[at + other * 128];
        all[n][i] = other == 0 ? first : all[n][i] + first;
        all[n][i] += exchange[at + other * 128];
      }
    }
  }
  run_epilogue(
      job, block.row_group * Shape::kTiles + threadIdx.x / 128 / kWays * 4 + threadIdx.x % 128 / 32,
      block.batch_tile * (kBatch / 8) + way * kMine, all);
}

// One block's tile of a product.
template <WeightFormat kFormat, int kRowGroups, int kWays, int kBatch>
__device__ __forceinline__ void multiply_block_tile(const Gemm& job, const BlockTile& block,
                                                    std::byte* raw) {
  using Shape = QuantWgmmaShape<kFormat, kRowGroups, kWays, kBatch>;
  std::byte* const stages = raw + (1024 - smem_address(raw) % 1024) % 1024;
  auto* const sums = reinterpret_cast<float*>(stages + Shape::kStages * Shape::kStageBytes);
  auto* const full =
      reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(sums) + Shape::kHeldBytes);
  std::uint64_t* const empty = full + Shape::kStages;
  if (threadIdx.x == 0) {
    for (std::uint32_t i = 0; i < Shape::kStages; ++i) {
      mbarrier_init(&full[i], 1);
      mbarrier_init(&empty[i], Shape::kGroups);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  pdl_trigger();
  if (threadIdx.x >= Shape::kGroups * 128) {
    if constexpr (Shape::kReallocRegisters) setmaxnreg_dec<40>();
    if (threadIdx.x < Shape::kGroups * 128 + Shape::kProducerWarps * 32) {
      QuantProducer<kFormat, kRowGroups, kWays, kBatch>(job, block, stages).run(full, empty);
    }
    return;
  }
  if constexpr (Shape::kReallocRegisters) setmaxnreg_inc<232>();
  const HeldSums<Shape::kGroups* 128> held = {sums + threadIdx.x};
  float sum[kBatch / 8][4];
#pragma unroll
  for (auto& fragment : sum) {
    for (float& value : fragment) value = 0;
  }
  sum_way<kFormat, kRowGroups, kWays, kBatch>(job, stages, full, empty, held, sum);
  pdl_wait();
  if constexpr (kWays > 1) {
    // After this barrier all copied chunks have been multiplied, and their memory is free.
    named_barrier_sync<Shape::kGroups * 128>();
    add_ways<Shape, kWays, kBatch>(job, block, reinterpret_cast<float*>(stages), sums, sum);
  } else {
#pragma unroll
    for (int i = 0; i < kBatch / 2; ++i) {
      sum[i / 4][i % 4] = held.own[i * Shape::kGroups * 128] + sum[i / 4][i % 4];
    }
    run_epilogue(job, block.row_group * Shape::kTiles + threadIdx.x / 32,
                 block.batch_tile * (kBatch / 8), sum);
  }
}

template <WeightFormat kFormat, int kRowGroups, int kWays, int kBatch>
__global__ void __launch_bounds__(QuantWgmmaShape<kFormat, kRowGroups, kWays, kBatch>::kThreads, 1)
    quant_gemm_wgmma(Gemm job) {
  extern __shared__ std::byte raw[];
  multiply_block_tile<kFormat, kRowGroups, kWays, kBatch>(job, {blockIdx.x, blockIdx.y}, raw);
}

// Block (x, y) takes tile x of all groups' batches, or, where every group has as many rows, tile
// x % tiles of group x / tiles.
template <WeightFormat kFormat>
__global__ void __launch_bounds__(GroupedWgmmaShape<kFormat>::kThreads, 1)
    grouped_gemm_wgmma(const __grid_constant__ GroupedGemm all) {
  extern __shared__ std::byte raw[];
  pdl_wait();
  const std::uint32_t each = (all.gemm.rows + kLargeRows - 1) / kLargeRows;
  GemmTile tile = {blockIdx.x / each, blockIdx.x % each};
  if (all.groups != nullptr) {
    if (blockIdx.x >= all.counts[1]) return;
    tile = all.tiles[blockIdx.x];
  }
  const Gemm job = gemm_of_group(all, tile.group);
  multiply_block_tile<kFormat, 1, 4, kLargeRows>(job, {tile.batch_tile, blockIdx.y}, raw);
}

template <WeightFormat kFormat, int kRowGroups, int kWays, int kBatch>
void launch_quant_gemm_wgmma(const Gemm& job, cudaStream_t stream) {
  using Shape = QuantWgmmaShape<kFormat, kRowGroups, kWays, kBatch>;
  const dim3 grid((job.rows + kBatch - 1) / kBatch,
                  (row_tiles(job.weight.rows) + Shape::kTiles - 1) / Shape::kTiles);
  launch_kernel(quant_gemm_wgmma<kFormat, kRowGroups, kWays, kBatch>, grid, Shape::kThreads,
                Shape::kSharedBytes, stream, job);
}

template <WeightFormat kFormat>
void launch_grouped_gemm_wgmma(const GroupedGemm& job, cudaStream_t stream) {
  using Shape = GroupedWgmmaShape<kFormat>;
  const std::uint32_t each = (job.gemm.rows + kLargeRows - 1) / kLargeRows;
  const dim3 grid(job.groups != nullptr ? job.tiles_max : job.groups_max * each,
                  (row_tiles(job.gemm.weight.rows) + Shape::kTiles - 1) / Shape::kTiles);
  launch_kernel(grouped_gemm_wgmma<kFormat>, grid, Shape::kThreads, Shape::kSharedBytes, stream,
                job);
}

}  // namespace pagoda::kernels::cuda
