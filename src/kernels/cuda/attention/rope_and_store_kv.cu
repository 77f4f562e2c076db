#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"
#include "kv/memory/element_range.h"

namespace pagoda::kernels::cuda {
namespace {

using kv::memory::Element;

constexpr std::uint32_t kWarps = 4;
constexpr std::uint32_t kLaneValues = 256 / 32;  // of the longest head

__device__ std::uint16_t rounded(Element element, float value) {
  return element == Element::kBF16 ? bf16_bits(value) : __half_as_ushort(__float2half_rn(value));
}

// The rotations of a position, [pairs].
struct Rotation {
  const float* cosines;
  const float* sines;
  std::uint32_t pairs;
  bool adjacent;

  // Value d of `head`, rotated where it has a partner.
  __device__ float of(const float* head, std::uint32_t d) const {
    if (d >= 2 * pairs) return head[d];
    const std::uint32_t pair = adjacent ? d / 2 : d % pairs;
    const bool second = adjacent ? d % 2 != 0 : d >= pairs;
    const float a = head[adjacent ? 2 * pair : pair];
    const float b = head[adjacent ? 2 * pair + 1 : pair + pairs];
    return second ? a * sines[pair] + b * cosines[pair] : a * cosines[pair] - b * sines[pair];
  }
};

// One head of a query, key or value in a warp's registers: lane i has dimensions i, i + 32, …
struct LaneRow {
  float values[kLaneValues] = {};
  std::byte* data;
  std::byte* scale = nullptr;

  // Whether every value is finite once it is rounded to the element.
  __device__ bool finite(Element element) const {
    const float limit = kv::memory::first_infinite(element);
    bool all = true;
#pragma unroll
    for (const float value : values) all = all && fabsf(value) < limit;
    return __all_sync(~0u, all);
  }
  __device__ void fill_nan() { fill(__int_as_float(0x7FC00000)); }
  __device__ void fill(float value) {
#pragma unroll
    for (float& own : values) own = value;
  }
  __device__ void store(Element element, std::uint32_t dim) const {
    if (element == Element::kE4M3) return store_codes(dim);
    const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (std::uint32_t i = 0; i < kLaneValues; ++i) {
      if (lane + 32 * i >= dim) break;
      reinterpret_cast<std::uint16_t*>(data)[lane + 32 * i] = rounded(element, values[i]);
    }
  }
  // Quantises the row to e4m3 codes and a scale, as kv/memory/codec.h does.
  __device__ void store_codes(std::uint32_t dim) const {
    float largest = 0;
#pragma unroll
    for (const float value : values) largest = fmaxf(largest, fabsf(value));
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
    }
    // 448 is 1.75 * 2^8: a mantissa above 1.75 carries into the exponent.
    const int carried = static_cast<int>((__float_as_uint(largest) + 0x1FFFFFu) >> 23);
    const int exponent = min(max(carried - 127 - 8, -15), 7);
    const float inverse = __int_as_float((127 - exponent) << 23);
    const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (std::uint32_t i = 0; i < kLaneValues; ++i) {
      if (lane + 32 * i >= dim) break;
      data[lane + 32 * i] = static_cast<std::byte>(e4m3_from_float(values[i] * inverse));
    }
    if (lane != 0) return;
    *reinterpret_cast<__half*>(scale) = __float2half_rn(__int_as_float((127 + exponent) << 23));
  }
};

// Marks the row's sequence. Several warps may write; they write the same word.
__device__ void note_nonfinite(const RopeAndStoreKv& job, const BatchToken& batch_token) {
  if (job.nonfinite != nullptr && threadIdx.x % 32 == 0) job.nonfinite[batch_token.sequence] = 1;
}

// A warp stores one head of a row's key and value, which stand in `key_head` and `value_head`.
__device__ void store_head(const RopeAndStoreKv& job, const BatchToken& batch_token,
                           std::uint32_t head, const Rotation& rotation, const float* key_head,
                           const float* value_head) {
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t layer = job.pages.layer;
  const std::uint32_t dim = layout.key_dim;
  const std::uint32_t block = batch_token.position / layout.block_tokens;
  const std::uint32_t token = batch_token.position % layout.block_tokens;
  const std::uint32_t page = job.pages.tables[job.sequences[batch_token.sequence].table + block];
  std::byte* const data = job.pages.data + std::size_t{page} * layout.page_bytes();
  LaneRow keys = {.data = data + layout.key_offset(layer, head, token),
                  .scale = data + layout.key_scale_offset(layer, head, token)};
  LaneRow values = {.data = data + layout.value_offset(layer, head, token),
                    .scale = data + layout.value_scale_offset(layer, head, token)};
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    const std::uint32_t d = threadIdx.x % 32 + 32 * i;
    if (d >= dim) break;
    keys.values[i] = rotation.of(key_head, d);
    values.values[i] = value_head[d];
  }
  const bool keys_finite = keys.finite(layout.element);
  if (!values.finite(layout.element) || !keys_finite) {
    keys.fill_nan();
    values.fill(0);
    note_nonfinite(job, batch_token);
  }
  keys.store(layout.element, dim);
  values.store(layout.element, dim);
}

// A warp takes one head of a query, or one of a key and value.
__global__ void __launch_bounds__(kWarps * 32) rope_and_store_kv(RopeAndStoreKv job) {
  pdl_trigger();
  const std::uint32_t row = blockIdx.x;
  const BatchToken batch_token = job.batch_tokens[row];
  const std::uint32_t known = batch_token.position == kNoPosition ? 0 : batch_token.position;
  const Rotation rotation = {.cosines = job.cosines + std::size_t{known} * job.pairs,
                             .sines = job.sines + std::size_t{known} * job.pairs,
                             .pairs = job.pairs,
                             .adjacent = job.adjacent};
  const kv::memory::PageLayout& layout = job.pages.layout;
  const std::uint32_t dim = layout.key_dim;
  const std::uint32_t head = blockIdx.y * kWarps + threadIdx.x / 32;
  const float* const from =
      job.qkv + (std::size_t{row} * (job.heads + 2 * layout.kv_heads) + head) * dim;
  pdl_wait();
  if (head >= job.heads) {
    if (head >= job.heads + layout.kv_heads || batch_token.position == kNoPosition) return;
    const float* const values = from + std::size_t{layout.kv_heads} * dim;
    return store_head(job, batch_token, head - job.heads, rotation, from, values);
  }
  // Queries of an 8-bit cache are fp16, which holds all that its bounds let through.
  const Element element = layout.element == Element::kBF16 ? Element::kBF16 : Element::kF16;
  LaneRow query = {.data = reinterpret_cast<std::byte*>(
                       job.query + (std::size_t{row} * job.heads + head) * dim)};
#pragma unroll
  for (std::uint32_t i = 0; i < kLaneValues; ++i) {
    const std::uint32_t d = threadIdx.x % 32 + 32 * i;
    if (d < dim) query.values[i] = rotation.of(from, d);
  }
  if (batch_token.position != kNoPosition && !query.finite(layout.element)) {
    query.fill_nan();
    note_nonfinite(job, batch_token);
  }
  query.store(element, dim);
}

}  // namespace

void launch_rope_and_store_kv(const RopeAndStoreKv& job, StreamHandle stream) {
  const std::uint32_t heads = job.heads + job.pages.layout.kv_heads;
  launch_kernel(rope_and_store_kv, dim3(job.rows, (heads + kWarps - 1) / kWarps), kWarps * 32, 0,
                stream, job);
}

}  // namespace pagoda::kernels::cuda
