// The query tile that a block attends with, and which keys its rows see: shared by the kernels of
// narrow tiles.
#pragma once

#include "kernels/cuda/attention/softmax_state.cuh"
#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {

// The visible keys of a tile's rows. Positions are below 2^31.
struct KeyMask {
  int position[2];  // of the thread's two rows; -1: no such row
  int earliest;     // of the tile's rows
  int first;        // key that any row sees
  int last;         // the same, and the latest position
  int window;

  __device__ __forceinline__ bool sees(int row, int key) const {
    return key <= position[row] && (window == 0 || key + window > position[row]);
  }
  // Whether every row sees every key of the tile that begins at `base`.
  __device__ __forceinline__ bool all_see_all(int base) const {
    return base + static_cast<int>(kKeyTile) - 1 <= earliest &&
           (window == 0 || base + window > last);
  }
  __device__ __forceinline__ bool sees_any(int row, int base) const {
    return base <= position[row] &&
           (window == 0 || base + static_cast<int>(kKeyTile) - 1 + window > position[row]);
  }
};

// The query tile of a block: its sequence, its KV head and the thread's two rows.
struct QueryTile {
  BatchSequence sequence;
  std::uint32_t kv_head;
  std::uint32_t group;
  std::uint32_t count;  // of rows
  QueryRow row[2];      // the thread's

  __device__ __forceinline__ QueryTile(const PagedAttention& job, const AttentionItem& item)
      : sequence(job.sequences[item.sequence]),
        kv_head(blockIdx.y),
        group(job.heads / job.pages.layout.kv_heads),
        count(rows_of_tile(item.tile, group, sequence.rows)) {
    for (int r = 0; r < 2; ++r) {
      row[r] = query_row(item.tile, threadIdx.x % 32 / 4 + 8 * r, group, sequence.rows);
    }
  }
  __device__ __forceinline__ KeyMask mask(const PagedAttention& job,
                                          const AttentionItem& item) const {
    const std::uint32_t first_token = item.tile * kQueryRows / group;
    const std::uint32_t last_token =
        min(sequence.rows - 1, (item.tile * kQueryRows + kQueryRows - 1) / group);
    const int begin = static_cast<int>(sequence.first_position);
    const int earliest = begin + static_cast<int>(first_token);
    const int window = static_cast<int>(job.window);
    const auto position = [&](int r) {
      return row[r].there ? begin + static_cast<int>(row[r].token) : -1;
    };
    return {.position = {position(0), position(1)},
            .earliest = earliest,
            .first = window != 0 && earliest + 1 > window ? earliest + 1 - window : 0,
            .last = begin + static_cast<int>(last_token),
            .window = window};
  }
  // The query head of the tile's row `place`.
  __device__ __forceinline__ std::uint32_t head(const AttentionItem& item,
                                                std::uint32_t place) const {
    return kv_head * group + query_row(item.tile, place, group, sequence.rows).head;
  }
  // The address of the result of the tile's row `place`, from `dimension` on.
  __device__ __forceinline__ Bf16* result(const PagedAttention& job, const AttentionItem& item,
                                          std::uint32_t place, std::uint32_t dimension) const {
    const QueryRow query = query_row(item.tile, place, group, sequence.rows);
    const std::uint32_t column =
        (kv_head * group + query.head) * job.pages.layout.value_dim + dimension;
    return job.activations + activation_index(sequence.first_row + query.token, column, job.rows);
  }
};

// The score whose weight is 1: the row's maximum, or 0 where the row has seen no key.
__device__ __forceinline__ float weighed_from(float top) { return top == kNothing ? 0.0f : top; }

}  // namespace pagoda::kernels::cuda
