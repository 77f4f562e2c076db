// The product of one group of a grouped GEMM as a GEMM of its own.
#pragma once

#include <algorithm>

#include "kernels/cuda/expert_ops.h"
#include "kernels/cuda/launch.cuh"

namespace pagoda::kernels::cuda {

// Where there is no such group, it has no rows. What the launch before wrote must be there.
__device__ __forceinline__ Gemm gemm_of_group(const GroupedGemm& all, std::uint32_t index) {
  Gemm job = all.gemm;
  GemmGroup group = {index, index * ((job.rows + 7) / 8 * 8), job.rows};
  if (all.groups != nullptr) {
    group = index < all.counts[0] ? all.groups[index] : GemmGroup{0, 0, 0};
  }
  job.rows = group.rows;
  job.weight.data += group.matrix * all.weight_stride;
  if (job.bias != nullptr) job.bias += group.matrix * all.bias_stride;
  const std::size_t slot = group.first_slot;
  if (!all.shares_x) job.x += slot * chunks_of(job.weight.columns) * kChunkColumns;
  if (is_gate(job.epilogue)) {
    job.activations += slot * (job.weight.rows / 2);
  } else if (all.groups != nullptr) {
    job.out += slot * job.out_stride;
  } else {
    job.out += group.matrix * all.group_columns;
  }
  return job;
}

// Blocks that share a group's row tiles, by groups. A processor runs one block at a time. Few
// groups are all there: one block for each processor. Of many some are not, and the others differ
// in rows: more and smaller blocks keep all processors busy.
inline dim3 grouped_grid(const GroupedGemm& job) {
  constexpr std::uint32_t kFewGroups = 16;
  const std::uint32_t tiles = (row_tiles(job.gemm.weight.rows) + 1) / 2;
  const std::uint32_t each = job.groups_max <= kFewGroups
                                 ? kSmCount / job.groups_max
                                 : (4 * kSmCount + job.groups_max - 1) / job.groups_max;
  return dim3(std::clamp(each, 1u, tiles), job.groups_max);
}

}  // namespace pagoda::kernels::cuda
