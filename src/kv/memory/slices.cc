#include "kv/memory/slices.h"

#include <map>
#include <numeric>

#include "base/assert.h"

namespace pagoda::kv::memory {

SlicePlan plan_slices(std::span<const LayerReach> layers) {
  ASSERT(!layers.empty(), "a model has layers");
  std::map<LayerReach, std::vector<std::size_t>> kinds;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    kinds[layers[layer]].push_back(layer);
  }
  std::size_t per_slice = 0;
  for (const auto& [reach, members] : kinds) per_slice = std::gcd(per_slice, members.size());
  ASSERT(per_slice > 0, "every kind has a layer");

  SlicePlan plan;
  plan.layers_per_slice = static_cast<std::uint32_t>(per_slice);
  plan.places.resize(layers.size());
  for (const auto& [reach, members] : kinds) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i % per_slice == 0) plan.slices.push_back(reach);
      plan.places[members[i]] = {static_cast<std::uint32_t>(plan.slices.size() - 1),
                                 static_cast<std::uint32_t>(i % per_slice)};
    }
  }
  return plan;
}

}  // namespace pagoda::kv::memory
