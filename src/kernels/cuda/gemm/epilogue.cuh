// The epilogue of a 16 x 8 fragment of a GEMM: rows of weights by rows of the batch.
#pragma once

#include "kernels/cuda/gates.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/device_math.cuh"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {

// Joins the gate and the up of two weight rows, eight apart, after their biases.
__device__ __forceinline__ float joined(const Gemm& job, std::uint32_t output, float gate,
                                        float up) {
  if (job.bias != nullptr) {
    gate += job.bias[output];
    up += job.bias[output + 8];
  }
  return gate_of<DeviceMath>(job.epilogue, gate, up);
}

// The coordinates of a thread's fragment: value i + 2 * half belongs to batch row i and to weight
// row low + 8 * half.
struct FragmentCoord {
  std::uint32_t row;     // of the batch, the first of two
  std::uint32_t output;  // the first of two, 8 apart

  __device__ __forceinline__ FragmentCoord(std::uint32_t tile, std::uint32_t batch_tile)
      : row(batch_tile * 8 + threadIdx.x % 4 * 2),
        output(tile * kTileRows + threadIdx.x % 32 / 4) {}

  __device__ __forceinline__ bool there(const Gemm& job, int value) const {
    return row + value % 2 < job.rows && output + value / 2 * 8 < job.weight.rows;
  }
  __device__ __forceinline__ float& out(const Gemm& job, int value) const {
    return job.out[(row + value % 2) * job.out_stride + output + value / 2 * 8];
  }
};

// Stores kCount fragments side by side, of row tile `tile` and batch rows from 8 * batch_tile on.
// Epilogue::kAdd reads all outputs before it writes the first: one latency, not one for each.
template <int kCount>
__device__ __forceinline__ void add_to_output(const Gemm& job, std::uint32_t tile,
                                              std::uint32_t batch_tile, float (*c)[4]) {
  float before[kCount][4];
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    const FragmentCoord place(tile, batch_tile + n);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      before[n][i] = place.there(job, i) ? place.out(job, i) : 0.0f;
    }
  }
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    const FragmentCoord place(tile, batch_tile + n);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (!place.there(job, i)) continue;
      const float bias = job.bias != nullptr ? job.bias[place.output + i / 2 * 8] : 0.0f;
      place.out(job, i) = before[n][i] + (job.bias != nullptr ? c[n][i] + bias : c[n][i]);
    }
  }
}

__device__ __forceinline__ void store_fragment(const Gemm& job, std::uint32_t tile,
                                               std::uint32_t batch_tile, const float (&c)[4]) {
  const FragmentCoord place(tile, batch_tile);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (!place.there(job, i)) continue;
    const float y = c[i];
    place.out(job, i) = job.bias != nullptr ? y + job.bias[place.output + i / 2 * 8] : y;
  }
}

__device__ __forceinline__ void gate_fragment(const Gemm& job, std::uint32_t tile,
                                              std::uint32_t batch_tile, const float (&c)[4]) {
  const FragmentCoord place(tile, batch_tile);
  const std::uint32_t column = tile * 8 + threadIdx.x % 32 / 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (!place.there(job, i)) continue;
    job.activations[activation_index(place.row + i, column, job.rows)] =
        bf16_bits(joined(job, place.output, c[i], c[i + 2]));
  }
}

template <int kCount>
__device__ __forceinline__ void run_epilogue(const Gemm& job, std::uint32_t tile,
                                             std::uint32_t batch_tile, float (&c)[kCount][4]) {
  constexpr int kTogether = kCount < 16 ? kCount : 4;  // registers are few with many
  if (job.epilogue == Epilogue::kAdd) {
#pragma unroll
    for (int n = 0; n < kCount; n += kTogether) {
      add_to_output<kTogether>(job, tile, batch_tile + n, c + n);
    }
    return;
  }
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    if (is_gate(job.epilogue)) {
      gate_fragment(job, tile, batch_tile + n, c[n]);
    } else {
      store_fragment(job, tile, batch_tile + n, c[n]);
    }
  }
}

// The same where rows of the batch are the left factor: a warp has 16 of them, from `row` on, by
// row tiles [tile, tile + tiles). Fragment n holds rows g and g + 8 of the batch, weight rows 8n +
// 2t and 8n + 2t + 1.
template <int kFragments>
__device__ __forceinline__ void gate_rows(const Gemm& job, std::uint32_t row, std::uint32_t tile,
                                          std::uint32_t tiles, const float (&c)[kFragments][4]) {
#pragma unroll
  for (std::uint32_t i = 0; i < kFragments / 2; ++i) {
    if (i >= tiles) break;
    const std::uint32_t column = (tile + i) * 8 + threadIdx.x % 4 * 2;
    if (2 * column >= job.weight.rows) break;
    const std::uint32_t output = (tile + i) * kTileRows + threadIdx.x % 4 * 2;  // of the gate
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t at = row + threadIdx.x % 32 / 4 + 8 * half;
      if (at >= job.rows) continue;
      const float low = joined(job, output, c[2 * i][2 * half], c[2 * i + 1][2 * half]);
      const float high =
          joined(job, output + 1, c[2 * i][2 * half + 1], c[2 * i + 1][2 * half + 1]);
      Bf16* const to = &job.activations[activation_index(at, column, job.rows)];
      *reinterpret_cast<std::uint32_t*>(to) = pack_bf16(low, high);
    }
  }
}

// Two outputs side by side; the second may lie beyond the last weight row.
struct OutputPair {
  float* at;
  bool both;
  bool aligned;  // to eight bytes

  __device__ __forceinline__ float2 read() const {
    if (both && aligned) return *reinterpret_cast<const float2*>(at);
    return make_float2(at[0], both ? at[1] : 0.0f);
  }
  __device__ __forceinline__ void write(float2 y) const {
    if (both && aligned) {
      *reinterpret_cast<float2*>(at) = y;
      return;
    }
    at[0] = y.x;
    if (both) at[1] = y.y;
  }
};

// The outputs that are added to are read for several fragments before the first is written.
template <int kFragments>
__device__ __forceinline__ void store_rows(const Gemm& job, std::uint32_t row, std::uint32_t tile,
                                           std::uint32_t tiles, const float (&c)[kFragments][4]) {
  constexpr std::uint32_t kTogether = kFragments < 8 ? kFragments : 8;
  const std::uint32_t first = tile * kTileRows + threadIdx.x % 4 * 2;
  const std::uint32_t end = min(job.weight.rows, (tile + tiles) * kTileRows);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t at = row + threadIdx.x % 32 / 4 + 8 * half;
    if (at >= job.rows) continue;
    float* const out = job.out + at * job.out_stride;
    const bool aligned = reinterpret_cast<std::uintptr_t>(out) % 8 == 0;
#pragma unroll
    for (std::uint32_t n = 0; n < kFragments; n += kTogether) {
      float2 before[kTogether];
#pragma unroll
      for (std::uint32_t i = 0; i < kTogether; ++i) {
        const std::uint32_t output = first + (n + i) * 8;
        before[i] = make_float2(0, 0);
        if (job.epilogue != Epilogue::kAdd || output >= end) continue;
        before[i] = OutputPair{out + output, output + 1 < end, aligned}.read();
      }
#pragma unroll
      for (std::uint32_t i = 0; i < kTogether; ++i) {
        const std::uint32_t output = first + (n + i) * 8;
        if (output >= end) continue;
        const bool both = output + 1 < end;
        float2 y = make_float2(c[n + i][2 * half], c[n + i][2 * half + 1]);
        if (job.bias != nullptr) {
          y.x += job.bias[output];
          if (both) y.y += job.bias[output + 1];
        }
        if (job.epilogue == Epilogue::kAdd) y = make_float2(before[i].x + y.x, before[i].y + y.y);
        OutputPair{out + output, both, aligned}.write(y);
      }
    }
  }
}

template <int kFragments>
__device__ __forceinline__ void run_epilogue_rows(const Gemm& job, std::uint32_t row,
                                                  std::uint32_t tile, std::uint32_t tiles,
                                                  const float (&c)[kFragments][4]) {
  if (is_gate(job.epilogue)) {
    gate_rows(job, row, tile, tiles, c);
  } else {
    store_rows(job, row, tile, tiles, c);
  }
}

}  // namespace pagoda::kernels::cuda
