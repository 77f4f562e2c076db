// Which queries, keys and values are numbers: the rule is in kernels/ops.h.
#include "kernels/ref/finite.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kv/memory/codec.h"
#include "kv/memory/element_range.h"

namespace pagoda::kernels {

float first_infinite(Numerics numerics, kv::memory::Element element) {
  using kv::memory::Element;
  const float kept = kv::memory::first_infinite(element);
  if (numerics == Numerics::kFp32) return kept;
  return std::min(kept, kv::memory::first_infinite(Element::kBF16));
}

bool all_below(const float* values, std::size_t count, float limit) {
  bool below = true;
  for (std::size_t i = 0; i < count; ++i) below &= std::fabs(values[i]) < limit;
  return below;
}

}  // namespace pagoda::kernels

namespace pagoda::kernels::ref {

void store_poisoned(const kv::memory::SequenceView& view, std::uint64_t position,
                    std::uint32_t head) {
  const kv::memory::PageLayout& layout = view.layer.layout;
  const std::vector<float> keys(layout.key_dim, std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> values(layout.value_dim, 0.0f);
  kv::memory::encode_row(layout.elements.keys, keys.data(), keys.size(),
                         view.key_row(head, position));
  // A latent of integers has one scale: the NaN that its key needs, and that counts as 0 of a
  // value.
  if (layout.values_in_keys && is_integer(layout.elements.keys)) return;
  kv::memory::encode_row(layout.elements.values, values.data(), values.size(),
                         view.value_row(head, position));
}

}  // namespace pagoda::kernels::ref
