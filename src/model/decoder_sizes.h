// How much memory a decoder computes in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"
#include "model/config.h"

namespace pagoda::model {

// The largest width(layer) of the model's layers.
template <class Width>
std::size_t widest_of(const Config& config, const Width& width) {
  std::size_t widest = 0;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    widest = std::max<std::size_t>(widest, width(layer));
  }
  return widest;
}

// The most floats that the queries of a row have in a layer.
std::size_t query_floats_max(const Config& config);

// Returns the scratch bytes of one thread: the kernels' own or a row of floats, and for attention
// also the partials of one tile, twice.
std::size_t scratch_bytes(const Config& config, const kernels::KernelSet& kernels);

}  // namespace pagoda::model
