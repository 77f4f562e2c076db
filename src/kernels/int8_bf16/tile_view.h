// A tile of a product, where it stands in memory.
#pragma once

#include <cstddef>

namespace pagoda::kernels::PAGODA_ISA {

// The address of a tile's first row and the distance from row to row.
struct TileView {
  const std::byte* data = nullptr;
  std::size_t stride = 0;

  const std::byte* row(std::size_t index) const { return data + index * stride; }
  TileView from(std::size_t index) const { return {row(index), stride}; }
};

}  // namespace pagoda::kernels::PAGODA_ISA
