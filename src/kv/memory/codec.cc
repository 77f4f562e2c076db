#include "kv/memory/codec.h"

#include <cstring>

#include "base/half.h"

namespace pagoda::kv::memory {
namespace {

template <class Convert>
void encode_halves(const float* values, std::size_t count, std::byte* row, Convert convert) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t bits = convert(values[i]);
    std::memcpy(row + 2 * i, &bits, 2);
  }
}

template <class Convert>
void decode_halves(const std::byte* row, std::size_t count, float* values, Convert convert) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, row + 2 * i, 2);
    values[i] = convert(bits);
  }
}

}  // namespace

void encode_row(Element element, const float* values, std::size_t count, std::byte* row) {
  switch (element) {
    case Element::kF32:
      std::memcpy(row, values, count * sizeof(float));
      return;
    case Element::kF16:
      encode_halves(values, count, row, fp16_from_float);
      return;
    case Element::kBF16:
      encode_halves(values, count, row, bf16_from_float);
      return;
  }
}

void decode_row(Element element, const std::byte* row, std::size_t count, float* values) {
  switch (element) {
    case Element::kF32:
      std::memcpy(values, row, count * sizeof(float));
      return;
    case Element::kF16:
      decode_halves(row, count, values, float_from_fp16);
      return;
    case Element::kBF16:
      decode_halves(row, count, values, float_from_bf16);
      return;
  }
}

}  // namespace pagoda::kv::memory
