// Samples a token by a row of logits; one block for each token.
//
// Tokens are compared by rank, a number that is higher for tokens that come earlier in the order:
// the logit's bits made monotone, then the lower id. The first tokens of the order are then those
// from a least rank on, and all masses are sums of integers, which have one value in whatever order
// they are added.
#include "base/random.h"
#include "kernels/cuda/exp_on_device.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx/ptx.cuh"
#include "kernels/ops.h"

namespace pagoda::kernels::cuda {
namespace {

using Rank = std::uint64_t;

constexpr std::uint32_t kThreads = 1024;
constexpr std::uint32_t kWarps = kThreads / 32;
constexpr std::uint32_t kListMax = 2 * kThreads;
static_assert(kTopKMax <= kThreads && kWarps == 32);
constexpr Rank kNotFinite = ~Rank{0};

// The threads of a block share these in shared memory.
struct Shared {
  std::uint64_t warps[kWarps];
  std::uint64_t masses[kWarps];  // of the field, in each warp's segment of the row
  Rank list[kListMax];
  std::uint32_t listed;
  std::uint64_t found;
};

struct Row {
  const float* logits;
  std::uint32_t count;
  float best;
  GpuSamplingParams params;

  // The number of ids that a warp adds up.
  __device__ std::uint32_t segment() const { return (count + 1023) / 1024 * 32; }
};

__device__ Rank rank_of(float logit, std::uint32_t id) {
  const std::uint32_t bits = __float_as_uint(logit == 0.0f ? 0.0f : logit);
  const bool finite = (bits & 0x7F800000u) != 0x7F800000u;
  const std::uint32_t order = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return finite ? Rank{order} << 32 | (0xFFFFFFFFu - id) : kNotFinite;
}

__device__ std::uint32_t id_of(Rank rank) { return 0xFFFFFFFFu - static_cast<std::uint32_t>(rank); }

// Calls visit(id, logit) for ids first, first + step, … below `end`; several are read at once.
template <class Visit>
__device__ void visit_row(const Row& row, std::uint32_t first, std::uint32_t step,
                          std::uint32_t end, Visit visit) {
  constexpr std::uint32_t kAtOnce = 8;
  for (std::uint32_t id = first; id < end; id += kAtOnce * step) {
    float logits[kAtOnce];
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      logits[i] = id + i * step < end ? row.logits[id + i * step] : 0.0f;
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      if (id + i * step < end) visit(id + i * step, logits[i]);
    }
  }
}

template <class Merge>
__device__ std::uint64_t merge_warp(std::uint64_t value, Merge merge) {
  for (int step = 16; step > 0; step /= 2) {
    value = merge(value, __shfl_xor_sync(~0u, value, step));
  }
  return value;
}

// Reduces the values of all threads of the block; every thread gets the result.
template <class Merge>
__device__ std::uint64_t merge_block(std::uint64_t value, Shared& shared, Merge merge) {
  value = merge_warp(value, merge);
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared.warps[threadIdx.x / 32] = value;
  __syncthreads();
  return merge_warp(shared.warps[threadIdx.x % 32], merge);
}

__device__ std::uint64_t larger(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }
__device__ std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a + b; }

__device__ std::uint32_t weight_of(const Row& row, float logit) {
  constexpr float kWeightless = -22.0f;  // 2^30 times its exponential is below a half
  const float x = (logit - row.best) * row.params.inverse_temperature;
  if (x < kWeightless) return 0;
  const float share = exp_within_on_device(x);
  return share < row.params.min_p ? 0 : static_cast<std::uint32_t>(rintf(share * kWeightOfBest));
}

__device__ std::uint32_t weight_in_field(const Row& row, std::uint32_t id, float logit,
                                         Rank least) {
  return rank_of(logit, id) >= least ? weight_of(row, logit) : 0;
}

// The mass of tokens from rank `least` on; the mass of each segment stays in `shared`.
__device__ std::uint64_t mass_from(const Row& row, Rank least, Shared& shared) {
  const std::uint32_t begin = threadIdx.x / 32 * row.segment();
  const std::uint32_t end = min(begin + row.segment(), row.count);
  std::uint64_t mass = 0;
  visit_row(row, begin + threadIdx.x % 32, 32, end,
            [&](std::uint32_t id, float logit) { mass += weight_in_field(row, id, logit, least); });
  mass = merge_warp(mass, sum);
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared.masses[threadIdx.x / 32] = mass;
  __syncthreads();
  return merge_warp(shared.masses[threadIdx.x % 32], sum);
}

// The token at which the weights of the field, added up by id, pass `target`: which segment by
// mass_from(), then all threads share that one, neighbours taking neighbouring ids.
__device__ std::uint32_t find(const Row& row, Rank least, std::uint64_t target, Shared& shared) {
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t at = 0;
  while (target >= shared.masses[at]) target -= shared.masses[at++];
  const std::uint32_t end = min((at + 1) * row.segment(), row.count);
  const std::uint32_t each = (row.segment() + kThreads - 1) / kThreads;
  const std::uint32_t first = at * row.segment() + threadIdx.x * each;
  std::uint64_t mine = 0;
  for (std::uint32_t id = first; id < min(first + each, end); ++id) {
    mine += weight_in_field(row, id, row.logits[id], least);
  }
  std::uint64_t upto = mine;  // of this lane and those below it
  for (int step = 1; step < 32; step *= 2) {
    const std::uint64_t below = __shfl_up_sync(~0u, upto, step);
    if (lane >= step) upto += below;
  }
  __syncthreads();
  if (lane == 31) shared.warps[warp] = upto;
  __syncthreads();
  upto += merge_warp(lane < warp ? shared.warps[lane] : 0, sum);
  if (target < upto && target >= upto - mine) {
    target -= upto - mine;
    std::uint32_t id = first;
    for (;; ++id) {
      const std::uint32_t weight = weight_in_field(row, id, row.logits[id], least);
      if (target < weight) break;
      target -= weight;
    }
    shared.found = id;
  }
  __syncthreads();
  return static_cast<std::uint32_t>(shared.found);
}

// The one of `count` different ranks in the list that has k - 1 above it.
__device__ Rank kth_listed(std::uint32_t count, std::uint32_t k, Shared& shared) {
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < count; i += kThreads) {
    const Rank mine = shared.list[i];
    std::uint32_t above = 0;
    for (std::uint32_t j = 0; j < count; ++j) above += shared.list[j] > mine ? 1 : 0;
    if (above == k - 1 && mine != 0) shared.found = mine;
  }
  __syncthreads();
  return shared.found;
}

__device__ std::uint64_t count_from(const Row& row, Rank least, Shared& shared) {
  std::uint64_t count = 0;
  visit_row(row, threadIdx.x, kThreads, row.count,
            [&](std::uint32_t id, float logit) { count += rank_of(logit, id) >= least ? 1 : 0; });
  return merge_block(count, shared, sum);
}

// The rank of token number k in order. Among the best of each thread's ids, number k is a bound:
// k tokens at least come up to it, and hardly more. These few are listed.
__device__ Rank kth_rank(const Row& row, Rank mine, Rank best, Shared& shared) {
  const std::uint32_t k = row.params.top_k;
  __syncthreads();
  shared.list[threadIdx.x] = mine;
  Rank low = kth_listed(kThreads, k, shared);  // at least k from here on
  Rank high = best + 1;                        // fewer than k from here on
  std::uint64_t count = count_from(row, low, shared);
  while (count > kListMax) {
    const Rank middle = low + (high - low) / 2;
    const std::uint64_t there = count_from(row, middle, shared);
    if (there < k) {
      high = middle;
    } else {
      low = middle;
      count = there;
    }
  }
  if (threadIdx.x == 0) shared.listed = 0;
  __syncthreads();
  visit_row(row, threadIdx.x, kThreads, row.count, [&](std::uint32_t id, float logit) {
    const Rank rank = rank_of(logit, id);
    if (rank >= low) shared.list[atomicAdd(&shared.listed, 1u)] = rank;
  });
  return kth_listed(static_cast<std::uint32_t>(count), k, shared);
}

__device__ std::uint32_t sample_token(const Row& row, Rank least, Shared& shared) {
  const GpuSamplingParams& params = row.params;
  const std::uint64_t seed = std::uint64_t{params.seed_high} << 32 | params.seed_low;
  std::uint64_t mass = mass_from(row, least, shared);
  const double head = static_cast<double>(params.top_p) * static_cast<double>(mass);
  for (std::uint64_t round = 0;; ++round) {
    const double unit = random_unit(seed, round << 32, params.position);
    const auto target = static_cast<std::uint64_t>(unit * static_cast<double>(mass));
    const std::uint32_t id = find(row, least, target, shared);
    const float logit = row.logits[id];
    if (static_cast<double>(mass - weight_of(row, logit)) < head) return id;
    least = rank_of(logit, id) + 1;
    mass = mass_from(row, least, shared);
    if (static_cast<double>(mass) < head) return id;
  }
}

__global__ void __launch_bounds__(kThreads) sample(Sample job) {
  pdl_trigger();
  pdl_wait();
  __shared__ Shared shared;
  Row row = {
      .logits = nullptr, .count = job.vocabulary, .best = 0, .params = job.samples[blockIdx.x]};
  if (row.params.row == kNoRow) return;
  row.logits = job.logits + std::size_t{row.params.row} * job.vocabulary;
  Rank mine = 0;
  visit_row(row, threadIdx.x, kThreads, row.count,
            [&](std::uint32_t id, float logit) { mine = larger(mine, rank_of(logit, id)); });
  const Rank best = merge_block(mine, shared, larger);
  std::uint32_t chosen = best == kNotFinite ? kNotSampled : id_of(best);
  if (row.params.inverse_temperature > 0 && chosen != kNotSampled) {
    row.best = row.logits[chosen] + 0.0f;
    const bool all = row.params.top_k == 0 || row.params.top_k >= row.count;
    chosen = sample_token(row, all ? 0 : kth_rank(row, mine, best, shared), shared);
  }
  if (threadIdx.x == 0) job.sampled_tokens[blockIdx.x] = chosen;
}

}  // namespace

void launch_sample(const Sample& job, StreamHandle stream) {
  if (job.count > 0) launch_kernel(sample, dim3(job.count), kThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda
