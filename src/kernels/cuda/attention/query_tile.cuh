// The query tile that a block attends with, and which keys its rows see: shared by the kernels of
// narrow tiles.
#pragma once

#include "kernels/cuda/attention/softmax_state.cuh"
#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {

// Which keys of a sequence: those of the window (or all), or the sinks of rows that see a gap.
enum class KeyPart { kWindow, kSinks };

// The visible keys of a tile's rows. Positions are below 2^31.
struct KeyMask {
  int low[2];    // the first and the last key that the thread's two rows see
  int high[2];   // -1: none
  int all_low;   // the same of keys that every row sees
  int all_high;  // below all_low: none
  int first;     // the same of keys that any row sees
  int last;

  __device__ __forceinline__ bool sees(int row, int key) const {
    return key >= low[row] && key <= high[row];
  }
  // Whether every row sees every key of the tile that begins at `base`.
  __device__ __forceinline__ bool all_see_all(int base) const {
    return base >= all_low && base + static_cast<int>(kKeyTile) - 1 <= all_high;
  }
  __device__ __forceinline__ bool sees_any(int row, int base) const {
    return base <= high[row] && base + static_cast<int>(kKeyTile) - 1 >= low[row];
  }
};

// The query tile of a block: its sequence, its KV head and the thread's two rows.
struct QueryTile {
  BatchSequence sequence;
  SeenKeys seen;
  std::uint32_t kv_head;
  std::uint32_t group;
  std::uint32_t count;  // of rows
  QueryRow row[2];      // the thread's

  __device__ __forceinline__ QueryTile(const PagedAttention& job, const AttentionItem& item)
      : sequence(job.sequences[item.sequence]),
        seen(job.window, sequence),
        kv_head(blockIdx.y),
        group(job.heads / job.pages.layout.kv_heads),
        count(rows_of_tile(item.tile, group, sequence.rows)) {
    for (int r = 0; r < 2; ++r) {
      row[r] = query_row(item.tile, threadIdx.x % 32 / 4 + 8 * r, group, sequence.rows);
    }
  }
  __device__ __forceinline__ std::uint32_t earliest(const AttentionItem& item) const {
    return sequence.first_position + item.tile * kQueryRows / group;
  }
  __device__ __forceinline__ std::uint32_t latest(const AttentionItem& item) const {
    const std::uint32_t last_token = (item.tile * kQueryRows + kQueryRows - 1) / group;
    return sequence.first_position + min(sequence.rows - 1, last_token);
  }
  // Whether a row of the tile looks at sinks behind a gap.
  __device__ __forceinline__ bool has_gap(const AttentionItem& item) const {
    return seen.has_gap(latest(item));
  }
  __device__ __forceinline__ KeyMask mask(const AttentionItem& item, KeyPart part) const {
    KeyMask mask;
    const auto last_sink = [&](std::uint32_t position) {
      return seen.has_gap(position) ? static_cast<int>(seen.sinks) - 1 : -1;
    };
    const bool sinks = part == KeyPart::kSinks;
    for (int r = 0; r < 2; ++r) {
      const std::uint32_t position = sequence.first_position + row[r].token;
      mask.low[r] = sinks ? 0 : static_cast<int>(seen.first(position));
      mask.high[r] = !row[r].there ? -1 : sinks ? last_sink(position) : static_cast<int>(position);
    }
    const std::uint32_t begin = earliest(item);
    const std::uint32_t end = latest(item);
    mask.all_low = sinks ? 0 : static_cast<int>(seen.first(end));
    mask.all_high = sinks ? last_sink(begin) : static_cast<int>(begin);
    mask.first = sinks ? 0 : static_cast<int>(seen.first(begin));
    mask.last = sinks ? last_sink(end) : static_cast<int>(end);
    return mask;
  }
  // The query head of the tile's row `place`.
  __device__ __forceinline__ std::uint32_t head(const AttentionItem& item,
                                                std::uint32_t place) const {
    return kv_head * group + query_row(item.tile, place, group, sequence.rows).head;
  }
  // Where the results of the tile's row `place` go.
  __device__ __forceinline__ ResultRow result(const PagedAttention& job, const AttentionItem& item,
                                              std::uint32_t place) const {
    const QueryRow query = query_row(item.tile, place, group, sequence.rows);
    return ResultRow(job, sequence.first_row + query.token, kv_head * group + query.head);
  }
};

// The score whose weight is 1: the row's maximum, or 0 where the row has seen no key.
__device__ __forceinline__ float weighed_from(float top) { return top == kNothing ? 0.0f : top; }

}  // namespace pagoda::kernels::cuda
