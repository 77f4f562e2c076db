// Which queries, keys and values are numbers: the rule is in kernels/ops.h.
#include "kernels/ref/finite.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kv/memory/codec.h"

namespace pagoda::kernels {
namespace {

constexpr float kFirstInfiniteBF16 = 0x1.FFp127f;

}  // namespace

float first_infinite(Arithmetic arithmetic, kv::memory::Element element) {
  switch (element) {
    case kv::memory::Element::kF32:
      if (arithmetic == Arithmetic::kPairs) return kFirstInfiniteBF16;
      break;
    case kv::memory::Element::kF16:
      return 65520.0f;
    case kv::memory::Element::kBF16:
      return kFirstInfiniteBF16;
    case kv::memory::Element::kE4M3:
      return std::nextafter(kv::memory::kE4M3RowMax, std::numeric_limits<float>::infinity());
  }
  return std::numeric_limits<float>::infinity();
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
  kv::memory::encode_row(layout.element, keys.data(), keys.size(), view.key_row(head, position));
  kv::memory::encode_row(layout.element, values.data(), values.size(),
                         view.value_row(head, position));
}

}  // namespace pagoda::kernels::ref
