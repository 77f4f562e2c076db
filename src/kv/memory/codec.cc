#include "kv/memory/codec.h"

#include <cstring>

#include "base/half.h"

namespace pagoda::kv::memory {
namespace {

float unchanged(float value) { return value; }

// Bits: an element as it stands in memory.
template <class Bits, Bits (*convert)(float)>
void encode(const float* values, std::size_t count, Row row) {
  for (std::size_t i = 0; i < count; ++i) {
    const Bits bits = convert(values[i]);
    std::memcpy(row.data + row.place(i) * sizeof(Bits), &bits, sizeof(Bits));
  }
}

template <class Bits, float (*convert)(Bits)>
void decode(Row row, std::size_t count, float* values) {
  for (std::size_t i = 0; i < count; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, row.data + row.place(i) * sizeof(Bits), sizeof(Bits));
    values[i] = convert(bits);
  }
}

}  // namespace

void encode_row(Element element, const float* values, std::size_t count, Row row) {
  switch (element) {
    case Element::kF32:
      return encode<float, unchanged>(values, count, row);
    case Element::kF16:
      return encode<std::uint16_t, fp16_from_float>(values, count, row);
    case Element::kBF16:
      return encode<std::uint16_t, bf16_from_float>(values, count, row);
  }
}

void decode_row(Element element, Row row, std::size_t count, float* values) {
  switch (element) {
    case Element::kF32:
      return decode<float, unchanged>(row, count, values);
    case Element::kF16:
      return decode<std::uint16_t, float_from_fp16>(row, count, values);
    case Element::kBF16:
      return decode<std::uint16_t, float_from_bf16>(row, count, values);
  }
}

}  // namespace pagoda::kv::memory
