// Products of few rows: bound by the reading of weights.
//
// Every warp owns row tiles and streams them through a ring of its own in shared memory, copied by
// the bulk engine far ahead of their use: bytes in flight cost no registers. The batch's operand is
// small and read through the first-level cache. Weights do not depend on the launch before, so
// their copies begin before that one has ended.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/product_finish.cuh"
#include "kernels/cuda/tensor_core.cuh"

namespace pagoda::kernels::cuda {

inline constexpr std::uint32_t kStreamWarps = 4;
inline constexpr std::uint32_t kStageChunks = 4;

// About 40 KB in a warp's ring.
constexpr std::uint32_t stream_stages(Form form) {
  return form == Form::kBf16 ? 5 : form == Form::kCodes8 || form == Form::kCodes8Short ? 9 : 16;
}
constexpr std::uint32_t stage_bytes(Form form) { return kStageChunks * chunk_bytes(form); }
constexpr std::uint32_t stream_shared_bytes(Form form) {
  return kStreamWarps * stream_stages(form) * (stage_bytes(form) + 8);
}

// The left side of one step of 16 columns, out of a chunk in shared memory.
template <Form kForm>
struct StepReader;

template <>
struct StepReader<Form::kBf16> {
  static __device__ __forceinline__ void read(const std::byte* chunk, int step, std::uint32_t lane,
                                              std::uint32_t (&a)[4]) {
    const std::byte* const at =
        chunk + (2 * step + lane % 4 / 2) * 128 + lane / 4 * 16 + lane % 2 * 8;
    const uint2 low = *reinterpret_cast<const uint2*>(at);
    const uint2 high = *reinterpret_cast<const uint2*>(at + 1024);
    a[0] = low.x;
    a[1] = high.x;
    a[2] = low.y;
    a[3] = high.y;
  }
};

// 0x4300 | q is the bf16 128 + q, from which 128 + zero is taken: exact.
template <std::uint32_t kZero>
__device__ __forceinline__ void read_codes4(const std::byte* chunk, int step, std::uint32_t lane,
                                            std::uint32_t (&a)[4]) {
  const std::uint32_t word = *reinterpret_cast<const std::uint32_t*>(chunk + lane * 16 + step * 4);
  const __nv_bfloat162 shift = __float2bfloat162_rn(128.0f + kZero);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t raised = ((word >> (4 * i)) & 0x000F000Fu) | 0x43004300u;
    const __nv_bfloat162 code = __hsub2(*reinterpret_cast<const __nv_bfloat162*>(&raised), shift);
    a[i] = *reinterpret_cast<const std::uint32_t*>(&code);
  }
}

template <>
struct StepReader<Form::kCodes4> {
  static __device__ __forceinline__ void read(const std::byte* chunk, int step, std::uint32_t lane,
                                              std::uint32_t (&a)[4]) {
    read_codes4<8>(chunk, step, lane, a);
  }
};
template <>
struct StepReader<Form::kCodes4Minimum> {
  static __device__ __forceinline__ void read(const std::byte* chunk, int step, std::uint32_t lane,
                                              std::uint32_t (&a)[4]) {
    read_codes4<0>(chunk, step, lane, a);
  }
};

template <>
struct StepReader<Form::kCodes8> {
  // 0x4B000000 | u is the float 2^23 + u.
  static __device__ __forceinline__ float code(std::uint32_t word, std::uint32_t byte) {
    const std::uint32_t bits = __byte_perm(word ^ 0x80808080u, 0x4B000000u, 0x7650u | byte);
    return __uint_as_float(bits) - (8388608.0f + 128.0f);
  }
  static __device__ __forceinline__ void read(const std::byte* chunk, int step, std::uint32_t lane,
                                              std::uint32_t (&a)[4]) {
    const uint2 v =
        *reinterpret_cast<const uint2*>(chunk + step / 2 * 512 + lane * 16 + step % 2 * 8);
    a[0] = pack_bf16(code(v.x, 0), code(v.x, 1));
    a[1] = pack_bf16(code(v.x, 2), code(v.x, 3));
    a[2] = pack_bf16(code(v.y, 0), code(v.y, 1));
    a[3] = pack_bf16(code(v.y, 2), code(v.y, 3));
  }
};
template <>
struct StepReader<Form::kCodes8Short> : StepReader<Form::kCodes8> {};

__device__ __forceinline__ float half_at(const std::byte* halves, std::uint32_t index) {
  return __half2float(reinterpret_cast<const __half*>(halves)[index]);
}

// sum = fma(scale, U, sum), then with minima sum = fma(minimum, X, sum).
template <int kTiles>
__device__ __forceinline__ void add_scaled(float (&sum)[kTiles][4], const float (&u)[kTiles][4],
                                           float low, float high) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    sum[n][0] = __fmaf_rn(low, u[n][0], sum[n][0]);
    sum[n][1] = __fmaf_rn(low, u[n][1], sum[n][1]);
    sum[n][2] = __fmaf_rn(high, u[n][2], sum[n][2]);
    sum[n][3] = __fmaf_rn(high, u[n][3], sum[n][3]);
  }
}

// The right side of a chunk: [n][step], two registers each.
template <int kTiles>
struct ChunkOperand {
  uint2 b[kTiles][4];

  // `at` is the lane's place in the chunk of the first tile.
  __device__ __forceinline__ void load(const std::byte* at, const bool (&there)[kTiles]) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int step = 0; step < 4; ++step) {
        b[n][step] = make_uint2(0, 0);
        if (there[n]) b[n][step] = *reinterpret_cast<const uint2*>(at + n * 1024 + step * 256);
      }
    }
  }
};

// The left side of a chunk, read before it is needed: a step's four registers, and the scales of
// rows g and g + 8 in each group.
template <Form kForm>
struct ChunkWeights {
  static constexpr bool kNibbles = kForm == Form::kCodes4 || kForm == Form::kCodes4Minimum;
  static constexpr int kGroups = kForm == Form::kBf16 ? 0 : kForm == Form::kCodes8Short ? 4 : 2;
  static constexpr int kMinima = kForm == Form::kCodes4Minimum ? 2 : 0;

  std::uint32_t a[4][4];
  float scale[kGroups + 1][2];
  float minimum[kMinima + 1][2];

  __device__ __forceinline__ void read(const std::byte* chunk, std::uint32_t lane) {
#pragma unroll
    for (int step = 0; step < 4; ++step) StepReader<kForm>::read(chunk, step, lane, a[step]);
    const std::byte* const halves = chunk + (kNibbles ? 512 : 1024) + lane / 4 * 2;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      scale[i][0] = half_at(halves, i * 16);
      scale[i][1] = half_at(halves, i * 16 + 8);
    }
#pragma unroll
    for (int i = 0; i < kMinima; ++i) {
      minimum[i][0] = half_at(halves, 32 + i * 16);
      minimum[i][1] = half_at(halves, 32 + i * 16 + 8);
    }
  }
};

template <int kTiles>
__device__ __forceinline__ void multiply_step(float (&sum)[kTiles][4], const std::uint32_t (&a)[4],
                                              const ChunkOperand<kTiles>& x, int step) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) multiply_bf16(sum[n], a, x.b[n][step].x, x.b[n][step].y);
}

template <Form kForm, int kTiles>
__device__ __forceinline__ void add_chunk(float (&sum)[kTiles][4], const ChunkWeights<kForm>& w,
                                          const ChunkOperand<kTiles>& x) {
  if constexpr (kForm == Form::kBf16) {
#pragma unroll
    for (int step = 0; step < 4; ++step) multiply_step(sum, w.a[step], x, step);
  } else {
    constexpr int kSteps = 4 / ChunkWeights<kForm>::kGroups;
    constexpr std::uint32_t kOnes[4] = {0x3F803F80u, 0x3F803F80u, 0x3F803F80u, 0x3F803F80u};
#pragma unroll
    for (int group = 0; group < ChunkWeights<kForm>::kGroups; ++group) {
      float u[kTiles][4] = {};
      float ones[kTiles][4] = {};
#pragma unroll
      for (int step = group * kSteps; step < (group + 1) * kSteps; ++step) {
        multiply_step(u, w.a[step], x, step);
        if constexpr (kForm == Form::kCodes4Minimum) multiply_step(ones, kOnes, x, step);
      }
      add_scaled(sum, u, w.scale[group][0], w.scale[group][1]);
      if constexpr (kForm == Form::kCodes4Minimum) {
        add_scaled(sum, ones, w.minimum[group][0], w.minimum[group][1]);
      }
    }
  }
}

// The row tiles of one warp: every kStreamWarps-th of its block's.
struct WarpTiles {
  std::uint32_t first;
  std::uint32_t count;
};
__device__ __forceinline__ WarpTiles tiles_of(const Product& job, std::uint32_t warp) {
  const std::uint32_t tiles = row_tiles(job.weight.rows);
  const std::uint32_t begin = static_cast<std::uint64_t>(tiles) * blockIdx.x / gridDim.x;
  const std::uint32_t end = static_cast<std::uint64_t>(tiles) * (blockIdx.x + 1) / gridDim.x;
  const bool any = end - begin > warp;
  return {begin + warp, any ? (end - begin - warp + kStreamWarps - 1) / kStreamWarps : 0};
}

// Fills a warp's ring, stage after stage, tile after tile. One lane calls it. It counts and never
// divides: the warp waits meanwhile.
template <Form kForm>
struct StreamCopier {
  std::byte* ring;
  std::uint64_t* full;
  const std::byte* from;  // next chunk
  std::size_t next_tile;  // bytes from the end of a tile to the next one's beginning
  std::uint32_t tiles_left;
  std::uint32_t chunks;       // of a tile
  std::uint32_t chunks_left;  // of this tile
  std::uint32_t slot = 0;

  __device__ __forceinline__ void copy() {
    if (tiles_left == 0) return;
    const std::uint32_t count = min(kStageChunks, chunks_left);
    arrive_and_expect(&full[slot], count * chunk_bytes(kForm));
    copy_bulk(ring + slot * stage_bytes(kForm), from, count * chunk_bytes(kForm), &full[slot]);
    from += count * chunk_bytes(kForm);
    slot = slot + 1 == stream_stages(kForm) ? 0 : slot + 1;
    chunks_left -= count;
    if (chunks_left > 0) return;
    --tiles_left;
    chunks_left = chunks;
    from += next_tile;
  }
};

// The operand of a stage, read one stage ahead: it comes from the second-level cache when a warp is
// the first of its processor to want it, and that takes as long as several chunks.
template <int kTiles>
struct StageOperand {
  ChunkOperand<kTiles> chunk[kStageChunks];

  // Chunks from `first` on, the last one again where there are fewer.
  __device__ __forceinline__ void load(const std::byte* x, std::size_t stride, std::uint32_t first,
                                       std::uint32_t chunks, const bool (&there)[kTiles]) {
#pragma unroll
    for (std::uint32_t c = 0; c < kStageChunks; ++c) {
      chunk[c].load(x + min(first + c, chunks - 1) * stride, there);
    }
  }
};

// All chunks of a stage. A chunk's weights are read while the one before is multiplied: a chain of
// products waits for nothing but itself.
template <Form kForm, int kTiles>
__device__ __forceinline__ void add_stage(float (&sum)[kTiles][4], const std::byte* stage,
                                          std::uint32_t count, const StageOperand<kTiles>& x) {
  const std::uint32_t lane = threadIdx.x % 32;
  ChunkWeights<kForm> weights[2];
  weights[0].read(stage, lane);
#pragma unroll
  for (std::uint32_t c = 0; c < kStageChunks; ++c) {
    if (c >= count) break;
    if (c + 1 < kStageChunks) {
      weights[(c + 1) % 2].read(stage + (c + 1) * chunk_bytes(kForm), lane);
    }
    add_chunk<kForm>(sum, weights[c % 2], x.chunk[c]);
  }
}

template <Form kForm, int kTiles>
__device__ __forceinline__ void stream_tiles(const Product& job, const WarpTiles& tiles,
                                             StreamCopier<kForm>& copier) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t batch_tile = blockIdx.y * kTiles;
  const std::uint32_t chunks = copier.chunks;
  const std::size_t stride = std::size_t{(job.rows + 7) / 8} * 1024;
  const std::byte* const x = reinterpret_cast<const std::byte*>(job.x) + batch_tile * 1024 +
                             lane % 4 / 2 * 128 + lane / 4 * 16 + lane % 2 * 8;
  bool there[kTiles];
#pragma unroll
  for (int n = 0; n < kTiles; ++n) there[n] = (batch_tile + n) * 8 + lane / 4 < job.rows;
  StageOperand<kTiles> next;
  next.load(x, stride, 0, chunks, there);
  std::uint32_t slot = 0;
  std::uint32_t phase = 0;
  for (std::uint32_t i = 0; i < tiles.count; ++i) {
    float sum[kTiles][4] = {};
    for (std::uint32_t chunk = 0; chunk < chunks; chunk += kStageChunks) {
      const StageOperand<kTiles> now = next;
      const bool last = chunk + kStageChunks >= chunks;
      next.load(x, stride, last ? 0 : chunk + kStageChunks, chunks, there);
      wait_phase(&copier.full[slot], phase);
      add_stage<kForm, kTiles>(sum, copier.ring + slot * stage_bytes(kForm),
                               min(kStageChunks, chunks - chunk), now);
      __syncwarp();
      if (lane == 0) copier.copy();
      __syncwarp();
      slot = slot + 1 == stream_stages(kForm) ? 0 : slot + 1;
      phase ^= slot == 0 ? 1u : 0u;
    }
    finish_fragments(job, tiles.first + i * kStreamWarps, batch_tile, sum);
  }
}

template <Form kForm, int kTiles>
__global__ void __launch_bounds__(kStreamWarps * 32) stream_product(Product job) {
  extern __shared__ __align__(128) std::byte shared[];
  constexpr std::uint32_t kStages = stream_stages(kForm);
  constexpr std::uint32_t kRingBytes = kStages * stage_bytes(kForm);
  const std::uint32_t warp = threadIdx.x / 32;
  auto* const barriers = reinterpret_cast<std::uint64_t*>(shared + kStreamWarps * kRingBytes);
  const WarpTiles tiles = tiles_of(job, warp);
  const std::uint32_t chunks = chunks_of(job.weight.columns);
  const std::size_t tile_bytes = std::size_t{chunks} * chunk_bytes(kForm);
  StreamCopier<kForm> copier = {.ring = shared + warp * kRingBytes,
                                .full = barriers + warp * kStages,
                                .from = job.weight.data + tiles.first * tile_bytes,
                                .next_tile = (kStreamWarps - 1) * tile_bytes,
                                .tiles_left = tiles.count,
                                .chunks = chunks,
                                .chunks_left = chunks};
  if (threadIdx.x % 32 == 0) {
    for (std::uint32_t i = 0; i < kStages; ++i) init_barrier(&copier.full[i], 1);
    publish_barriers();
    for (std::uint32_t i = 0; i < kStages; ++i) copier.copy();
  }
  __syncwarp();
  let_next_launch_begin();
  wait_for_launch_before();
  stream_tiles<kForm, kTiles>(job, tiles, copier);
}

template <Form kForm, int kTiles>
void launch_stream(const Product& job, cudaStream_t stream) {
  constexpr std::uint32_t kProcessors = 132;
  const std::uint32_t blocks = min(kProcessors, row_tiles(job.weight.rows));
  launch_kernel(stream_product<kForm, kTiles>,
                dim3(blocks, (job.rows + 8 * kTiles - 1) / (8 * kTiles)), kStreamWarps * 32,
                stream_shared_bytes(kForm), stream, job);
}

template <Form kForm>
void launch_stream_of(const Product& job, cudaStream_t stream) {
  if (job.rows <= 8) return launch_stream<kForm, 1>(job, stream);
  launch_stream<kForm, 2>(job, stream);
}

template <Form kForm>
cudaError_t prepare_stream() {
  const auto raise = [](auto kernel) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                stream_shared_bytes(kForm));
  };
  for (const cudaError_t code :
       {raise(stream_product<kForm, 1>), raise(stream_product<kForm, 2>)}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
