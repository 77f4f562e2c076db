#include "model/attention_tile.h"

#include <algorithm>

namespace pagoda::model {

void merge_split(const kernels::KernelSet& kernels, const LayerAttention& layer,
                 const AttentionTile& tile, std::uint64_t split, const float* partials,
                 float* totals) {
  const std::size_t floats = kernels::partial_floats(layer.group, layer.heads.value_dim);
  const auto splits_of = [&](std::uint32_t row) {
    return kernels::visible_splits(tile.job, tile.rows.first_position + row,
                                   kernels.attention_split);
  };
  const auto rows_until = [&](auto holds) {
    std::uint32_t least = 0;
    std::uint32_t most = tile.rows.rows;
    while (least < most) {
      const std::uint32_t middle = (least + most) / 2;
      if (holds(middle)) {
        least = middle + 1;
      } else {
        most = middle;
      }
    }
    return least;
  };
  const std::uint32_t begin = rows_until([&](auto row) { return splits_of(row).last <= split; });
  const std::uint32_t fresh = rows_until([&](auto row) { return splits_of(row).first < split; });
  const std::uint32_t end = rows_until([&](auto row) { return splits_of(row).first <= split; });
  if (begin < fresh) {
    kernels.merge_partials(totals + begin * floats, partials + begin * floats,
                           (fresh - begin) * layer.group, layer.heads.value_dim);
  }
  const std::uint32_t copied = std::max(begin, fresh);
  if (copied < end && totals != partials) {
    std::copy(partials + copied * floats, partials + end * floats, totals + copied * floats);
  }
}

}  // namespace pagoda::model
