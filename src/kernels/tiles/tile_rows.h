// A tile of a product, where it stands in memory.
#pragma once

#include <cstddef>

namespace pagoda::kernels::PAGODA_TILE_SET {

// Where the rows of a tile stand.
struct TileRows {
  const std::byte* data = nullptr;
  std::size_t stride = 0;

  const std::byte* row(std::size_t index) const { return data + index * stride; }
  TileRows from(std::size_t index) const { return {row(index), stride}; }
};

}  // namespace pagoda::kernels::PAGODA_TILE_SET
