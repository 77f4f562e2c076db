// Rows of floats into the cache.
#include "kernels/int8_bf16/int_rows.h"
#include "kernels/int8_bf16/kernels.h"
#include "kernels/int8_bf16/page_tiles.h"
#include "kernels/int8_bf16/round.h"
#include "kernels/ref/finite.h"
#include "kernels/ref/int8_bf16.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels::PAGODA_ISA {
namespace {

constexpr std::size_t kRowPart = 64;  // values converted at a time

// Halves of elements [first, first + count) to where the row has them; `first` is even.
void scatter(const std::uint16_t* halves, std::size_t first, std::size_t count,
             kv::memory::Row row) {
  std::byte* const start = row.data + 2 * row.offset(first);
  std::size_t i = 0;
  if (row.step == 1) {  // pairs stand together
    for (; i + 2 <= count; i += 2) __builtin_memcpy(start + i * row.run_step, halves + i, 4);
  }
  for (; i < count; ++i) __builtin_memcpy(start + 2 * row.offset(i), halves + i, 2);
}

// Halves of a row whose elements stand between those of another.
void store_apart(const float* values, std::size_t count, std::byte* row) {
  auto* const halves = reinterpret_cast<std::uint16_t*>(row);
  for (std::size_t i = 0; i < count; i += kLanes)
    store_bf16_apart(halves + 2 * i, load(values + i));
}

// Codes of a row of kInt8, and its scale.
void store_int8_row(const float* values, std::size_t count, kv::memory::Row row) {
  const FlushSubnormals flush;
  const float largest = without_subnormals(largest_magnitude(values, count));
  const kv::memory::IntegerScale by = kv::memory::integer_scale(largest);
  __builtin_memcpy(row.scale, &by.scale, sizeof(by.scale));
  const F32x16 inverse = broadcast(by.inverse);
  const F32x16 lowest = broadcast(-kv::memory::kInt8CodeMax);
  const F32x16 highest = broadcast(kv::memory::kInt8CodeMax);
  for (std::size_t first = 0; first < count; first += kLanes) {
    const std::size_t lanes = count - first < kLanes ? count - first : kLanes;
    alignas(64) float part[kLanes] = {};
    alignas(64) std::int16_t codes[kLanes];
    __builtin_memcpy(part, values + first, lanes * sizeof(float));
    store_nearest(codes, min(max(load(part) * inverse, lowest), highest));
    for (std::size_t i = 0; i < lanes; ++i) {
      row.data[row.offset(first + i)] = static_cast<std::byte>(codes[i]);
    }
  }
}

void store_row(kv::memory::Element element, const float* values, std::size_t count,
               kv::memory::Row row) {
  if (element == kv::memory::Element::kInt8) return store_int8_row(values, count, row);
  if (element != kv::memory::Element::kBF16) {
    alignas(64) float flushed[kRowDimensionsMax];
    for (std::size_t i = 0; i < count; ++i) flushed[i] = ref::without_subnormals(values[i]);
    return kv::memory::encode_row(element, flushed, count, row);
  }
  const FlushSubnormals flush;
  if (row.step == 2 && count % kLanes == 0) {
    return store_apart(values, count, row.data);
  }
  alignas(64) std::uint16_t halves[kRowPart];
  for (std::size_t first = 0; first < count; first += kRowPart) {
    const std::size_t part = count - first < kRowPart ? count - first : kRowPart;
    round_row(values + first, part, halves);
    scatter(halves, first, part, row);
  }
}

}  // namespace

bool store_kv(const kv::memory::SequenceView& view, std::uint64_t position, const float* keys,
              const float* values) {
  const kv::memory::PageLayout& layout = view.layer.layout;
  return ref::store_finite_heads(
      Numerics::kInt8Bf16, view, position, keys, values,
      [&](std::uint32_t head, const float* key, const float* value) {
        store_row(layout.elements.keys, key, layout.key_dim, view.key_row(head, position));
        if (layout.values_in_keys) return;
        store_row(layout.elements.values, value, layout.value_dim, view.value_row(head, position));
      });
}

}  // namespace pagoda::kernels::PAGODA_ISA
