// Heads of keys and values that are not finite are stored as poison, so that nobody uses them.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::ref {

// Stores values 0 and keys NaN.
void store_poisoned(const kv::memory::SequenceView& view, std::uint64_t position,
                    std::uint32_t head);

// Calls store_head(head, key, value) for every head that is finite and poisons the others. Returns
// whether all were finite.
template <class StoreHead>
bool store_finite_heads(Numerics numerics, const kv::memory::SequenceView& view,
                        std::uint64_t position, const float* keys, const float* values,
                        const StoreHead& store_head) {
  const kv::memory::PageLayout& layout = view.layer.layout;
  const float key_limit = first_infinite(numerics, layout.elements.keys);
  const float value_limit = first_infinite(numerics, layout.elements.values);
  bool finite = true;
  for (std::uint32_t head = 0; head < layout.kv_heads; ++head) {
    const float* const key = keys + head * layout.key_dim;
    const float* const value = values + head * layout.value_dim;
    if (all_below(key, layout.key_dim, key_limit) &&
        all_below(value, layout.value_dim, value_limit)) {
      store_head(head, key, value);
    } else {
      store_poisoned(view, position, head);
      finite = false;
    }
  }
  return finite;
}

}  // namespace pagoda::kernels::ref
