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
inline constexpr std::uint32_t kStreamStages = 10;

// About 4 KB: large enough for the copy engine, small enough for ten in a ring.
constexpr std::uint32_t stage_chunks(Form form) {
  return form == Form::kBf16 ? 2 : form == Form::kCodes4 || form == Form::kCodes4Minimum ? 7 : 4;
}
constexpr std::uint32_t stage_bytes(Form form) { return stage_chunks(form) * chunk_bytes(form); }
constexpr std::uint32_t stream_shared_bytes(Form form) {
  return kStreamWarps * kStreamStages * (stage_bytes(form) + 8);
}

// The left side of one step of 16 columns, out of a chunk in shared memory.
template <Form kForm>
struct StepReader;

template <>
struct StepReader<Form::kBf16> {
  static __device__ __forceinline__ void read(const std::byte* chunk, int step, std::uint32_t lane,
                                              std::uint32_t (&a)[4]) {
    const std::uint32_t block = lane / 8;  // rows 0-7 and 8-15, then the same of the next columns
    load_blocks(chunk + block % 2 * 1024 + (2 * step + block / 2) * 128 + lane % 8 * 16, a);
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

// The right side of a chunk: [n][step][two registers].
template <int kTiles>
struct ChunkOperand {
  std::uint32_t b[kTiles][8];

  __device__ __forceinline__ void load(const Product& job, std::uint32_t first_tile,
                                       std::uint32_t chunk, std::uint32_t lane) {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(job.x);
    const std::uint32_t eights = chunks_of(job.weight.columns) * 8;
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const bool there = (first_tile + n) * 8 + lane / 4 < job.rows;
      const std::uint32_t* const at =
          words + (std::size_t{first_tile + n} * eights + chunk * 8) * 32 + lane;
#pragma unroll
      for (int i = 0; i < 8; ++i) b[n][i] = there ? at[i * 32] : 0;
    }
  }
};

template <Form kForm, int kTiles>
__device__ __forceinline__ void add_chunk(float (&sum)[kTiles][4], const std::byte* chunk,
                                          const ChunkOperand<kTiles>& x, std::uint32_t lane) {
  if constexpr (kForm == Form::kBf16) {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      std::uint32_t a[4];
      StepReader<kForm>::read(chunk, step, lane, a);
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        multiply_bf16(sum[n], a, x.b[n][2 * step], x.b[n][2 * step + 1]);
      }
    }
  } else {
    constexpr bool kNibbles = kForm == Form::kCodes4 || kForm == Form::kCodes4Minimum;
    constexpr int kGroups = kForm == Form::kCodes8Short ? 4 : 2;
    constexpr int kSteps = 4 / kGroups;
    const std::byte* const scales = chunk + (kNibbles ? 512 : 1024);
    const std::uint32_t low = lane / 4;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      float u[kTiles][4] = {};
#pragma unroll
      for (int step = group * kSteps; step < (group + 1) * kSteps; ++step) {
        std::uint32_t a[4];
        StepReader<kForm>::read(chunk, step, lane, a);
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
          multiply_bf16(u[n], a, x.b[n][2 * step], x.b[n][2 * step + 1]);
        }
      }
      add_scaled(sum, u, half_at(scales, group * 16 + low), half_at(scales, group * 16 + low + 8));
      if constexpr (kForm == Form::kCodes4Minimum) {
        constexpr std::uint32_t kOnes[4] = {0x3F803F80u, 0x3F803F80u, 0x3F803F80u, 0x3F803F80u};
        float ones[kTiles][4] = {};
#pragma unroll
        for (int step = group * kSteps; step < (group + 1) * kSteps; ++step) {
#pragma unroll
          for (int n = 0; n < kTiles; ++n) {
            multiply_bf16(ones[n], kOnes, x.b[n][2 * step], x.b[n][2 * step + 1]);
          }
        }
        add_scaled(sum, ones, half_at(scales, 32 + group * 16 + low),
                   half_at(scales, 32 + group * 16 + low + 8));
      }
    }
  }
}

// The stages that one warp streams: those of its row tiles, one after the other.
struct WarpStages {
  std::uint32_t first_tile;
  std::uint32_t tiles;
  std::uint32_t chunks;  // of a row tile
  std::uint32_t stages_a_tile;

  __device__ std::uint32_t count() const { return tiles * stages_a_tile; }
  __device__ std::uint32_t tile_of(std::uint32_t stage) const {
    return first_tile + stage / stages_a_tile * kStreamWarps;
  }
};

// Where a warp is in what it streams.
struct ChunkPlace {
  std::uint32_t stage = 0;
  std::uint32_t in_stage = 0;
  std::uint32_t in_tile = 0;

  __device__ __forceinline__ void advance(std::uint32_t tile_chunks, std::uint32_t stage_chunks) {
    ++in_stage;
    ++in_tile;
    if (in_tile == tile_chunks || in_stage == stage_chunks) {
      ++stage;
      in_stage = 0;
    }
    if (in_tile == tile_chunks) in_tile = 0;
  }
};

// How far ahead the operand is read: it comes from the second-level cache when a warp is the first
// of its processor to want it, and that takes as long as several chunks.
constexpr int operand_chunks_ahead(int tiles) { return tiles == 1 ? 6 : tiles == 2 ? 4 : 2; }

template <Form kForm>
__device__ __forceinline__ WarpStages stages_of(const Product& job, std::uint32_t warp) {
  const std::uint32_t tiles = row_tiles(job.weight.rows);
  const std::uint32_t begin = static_cast<std::uint64_t>(tiles) * blockIdx.x / gridDim.x;
  const std::uint32_t end = static_cast<std::uint64_t>(tiles) * (blockIdx.x + 1) / gridDim.x;
  const std::uint32_t chunks = chunks_of(job.weight.columns);
  const std::uint32_t mine =
      end - begin > warp ? (end - begin - warp + kStreamWarps - 1) / kStreamWarps : 0;
  return {begin + warp, mine, chunks, (chunks + stage_chunks(kForm) - 1) / stage_chunks(kForm)};
}

template <Form kForm, int kTiles>
__global__ void __launch_bounds__(kStreamWarps * 32) stream_product(Product job) {
  extern __shared__ __align__(128) std::byte shared[];
  constexpr std::uint32_t kStageBytes = stage_bytes(kForm);
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x % 32;
  std::byte* const ring = shared + warp * kStreamStages * kStageBytes;
  auto* const full =
      reinterpret_cast<std::uint64_t*>(shared + kStreamWarps * kStreamStages * kStageBytes) +
      warp * kStreamStages;
  const WarpStages stages = stages_of<kForm>(job, warp);
  const auto copy_stage = [&](std::uint32_t stage) {
    const std::uint32_t chunk = stage % stages.stages_a_tile * stage_chunks(kForm);
    const std::uint32_t bytes =
        min(stage_chunks(kForm), stages.chunks - chunk) * chunk_bytes(kForm);
    const std::uint32_t slot = stage % kStreamStages;
    arrive_and_expect(&full[slot], bytes);
    copy_bulk(ring + slot * kStageBytes,
              job.weight.data +
                  (std::size_t{stages.tile_of(stage)} * stages.chunks + chunk) * chunk_bytes(kForm),
              bytes, &full[slot]);
  };
  if (lane == 0) {
    for (std::uint32_t i = 0; i < kStreamStages; ++i) init_barrier(&full[i], 1);
    publish_barriers();
    for (std::uint32_t i = 0; i < min(kStreamStages, stages.count()); ++i) copy_stage(i);
  }
  __syncwarp();
  let_next_launch_begin();
  wait_for_launch_before();

  const std::uint32_t first_batch_tile = blockIdx.y * kTiles;
  const std::uint32_t chunks = stages.tiles * stages.chunks;
  constexpr int kAhead = operand_chunks_ahead(kTiles);
  ChunkOperand<kTiles> x[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) x[i].load(job, first_batch_tile, i % stages.chunks, lane);
  float sum[kTiles][4] = {};
  ChunkPlace at;
  for (std::uint32_t first = 0; first < chunks; first += kAhead) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (first + i >= chunks) break;
      const std::uint32_t slot = at.stage % kStreamStages;
      if (at.in_stage == 0) wait_phase(&full[slot], at.stage / kStreamStages % 2);
      add_chunk<kForm>(sum, ring + slot * kStageBytes + at.in_stage * chunk_bytes(kForm), x[i],
                       lane);
      x[i].load(job, first_batch_tile, (at.in_tile + kAhead) % stages.chunks, lane);
      const bool tile_ends = at.in_tile + 1 == stages.chunks;
      if (tile_ends || at.in_stage + 1 == stage_chunks(kForm)) {
        __syncwarp();
        const std::uint32_t next = at.stage + kStreamStages;
        if (lane == 0 && next < stages.count()) copy_stage(next);
      }
      if (tile_ends) {
        finish_fragments(job, stages.tile_of(at.stage), first_batch_tile, sum);
        for (auto& fragment : sum) {
          for (float& value : fragment) value = 0;
        }
      }
      at.advance(stages.chunks, stage_chunks(kForm));
    }
  }
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
  if (job.rows <= 16) return launch_stream<kForm, 2>(job, stream);
  launch_stream<kForm, 4>(job, stream);
}

template <Form kForm>
cudaError_t prepare_stream() {
  const auto raise = [](auto kernel) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                stream_shared_bytes(kForm));
  };
  for (const cudaError_t code : {raise(stream_product<kForm, 1>), raise(stream_product<kForm, 2>),
                                 raise(stream_product<kForm, 4>)}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
