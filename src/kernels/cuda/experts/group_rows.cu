#include "kernels/cuda/expert_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kThreads = 1024;

struct GroupTables {
  std::uint32_t counts[kExpertsMax];
  std::uint32_t first_slot[kExpertsMax];
  std::uint32_t group[kExpertsMax];
};

// The sum of the values of all lower lanes.
__device__ __forceinline__ std::uint32_t sum_before(std::uint32_t own) {
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t sum = own;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::uint32_t lower = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += lower;
  }
  return sum - own;
}

// One warp lists the experts that have rows: their slots, groups and tiles.
__device__ __forceinline__ void list_groups(const GroupRows& job, GroupTables& tables) {
  const std::uint32_t lane = threadIdx.x;
  std::uint32_t slots = 0;
  std::uint32_t groups = 0;
  std::uint32_t tiles = 0;
  for (std::uint32_t begin = 0; begin < job.experts; begin += 32) {
    const std::uint32_t expert = begin + lane;
    const std::uint32_t rows = expert < job.experts ? tables.counts[expert] : 0;
    const std::uint32_t own_slots = (rows + 7) / 8 * 8;
    const std::uint32_t own_tiles = rows > kSmallRows ? (rows + kLargeRows - 1) / kLargeRows : 0;
    const std::uint32_t slot = slots + sum_before(own_slots);
    const std::uint32_t group = groups + sum_before(rows > 0 ? 1 : 0);
    const std::uint32_t tile = tiles + sum_before(own_tiles);
    if (rows > 0) {
      tables.first_slot[expert] = slot;
      tables.group[expert] = group;
      job.groups[group] = {expert, slot, rows};
      for (std::uint32_t i = 0; i < own_tiles; ++i) job.tiles[tile + i] = {group, i};
    }
    slots = __shfl_sync(~0u, slot + own_slots, 31);
    groups = __shfl_sync(~0u, group + (rows > 0 ? 1 : 0), 31);
    tiles = __shfl_sync(~0u, tile + own_tiles, 31);
  }
  if (lane == 0) {
    job.counts[0] = groups;
    job.counts[1] = tiles;
  }
}

__global__ void __launch_bounds__(kThreads) group_rows(GroupRows job) {
  __shared__ GroupTables tables;
  pdl_trigger();
  pdl_wait();
  for (std::uint32_t i = threadIdx.x; i < job.experts; i += kThreads) tables.counts[i] = 0;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < job.pairs; i += kThreads) {
    const std::uint32_t expert = job.chosen[i].expert;
    if (expert != kNoExpert) job.slot_of_pair[i] = atomicAdd(&tables.counts[expert], 1u);
  }
  __syncthreads();
  if (threadIdx.x < 32) list_groups(job, tables);
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < job.pairs; i += kThreads) {
    const std::uint32_t expert = job.chosen[i].expert;
    const bool there = expert != kNoExpert;
    job.group_of_pair[i] = there ? tables.group[expert] : kNoExpert;
    job.slot_of_pair[i] = there ? tables.first_slot[expert] + job.slot_of_pair[i] : 0;
  }
}

constexpr std::uint32_t kGatherThreads = 128;

// A block copies the row of one pair.
__global__ void __launch_bounds__(kGatherThreads) gather_rows(GatherRows job) {
  pdl_trigger();
  pdl_wait();
  const std::uint32_t index = job.group_of_pair[blockIdx.x];
  if (index == kNoExpert) return;
  const GemmGroup group = job.groups[index];
  const std::uint32_t row = blockIdx.x / job.chosen;
  const std::uint32_t to_row = job.slot_of_pair[blockIdx.x] - group.first_slot;
  const std::uint32_t chunks = chunks_of(job.columns);
  Bf16* const to = job.gathered + std::size_t{group.first_slot} * chunks * kChunkColumns;
  for (std::uint32_t i = threadIdx.x; i < chunks * 8; i += kGatherThreads) {
    *reinterpret_cast<uint4*>(to + activation_index(to_row, i * 8, group.rows)) =
        *reinterpret_cast<const uint4*>(job.x + activation_index(row, i * 8, job.rows));
  }
}

}  // namespace

void launch_group_rows(const GroupRows& job, StreamHandle stream) {
  launch_kernel(group_rows, dim3(1), kThreads, 0, stream, job);
}

void launch_gather_rows(const GatherRows& job, StreamHandle stream) {
  launch_kernel(gather_rows, dim3(job.rows * job.chosen), kGatherThreads, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda
