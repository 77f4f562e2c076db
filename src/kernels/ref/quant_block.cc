// Block layouts are drawn in ref/dequantise_legacy.cc and ref/dequantise_k.cc.
#include "kernels/ref/quant_block.h"

#include <cstring>

#include "base/assert.h"
#include "kernels/ref/dequantise_blocks.h"

namespace pagoda::kernels::ref {
namespace {

using gguf::TensorType;

constexpr unsigned kSignedBytes = 128;  // what makes signed bytes unsigned

std::uint8_t code_of(unsigned value) { return static_cast<std::uint8_t>(value); }

QuantBlock with_scale(float scale, float minimum = 0.0f) {
  return {.codes = {}, .scales = {scale, scale}, .minima = {minimum, minimum}};
}

// 32 codes of four bits: byte j holds code j and code j + 16.
void read_split_nibbles(const std::byte* bytes, QuantBlock& group) {
  for (int j = 0; j < 16; ++j) {
    group.codes[j] = code_of(load_byte(bytes + j) & 15);
    group.codes[j + 16] = code_of(load_byte(bytes + j) >> 4);
  }
}

void add_fifth_bits(const std::byte* bytes, QuantBlock& group) {
  const auto fifth = load_unaligned<std::uint32_t>(bytes);
  for (int j = 0; j < 32; ++j) {
    group.codes[j] = code_of(group.codes[j] | (fifth >> j & 1) << 4);
  }
}

void look_up_iq4(QuantBlock& group) {
  for (std::uint8_t& code : group.codes)
    code = code_of(static_cast<unsigned>(128 + kIq4Values[code]));
}

QuantBlock read_q8_0(const std::byte* block) {
  QuantBlock group = with_scale(load_fp16(block));
  for (int j = 0; j < 32; ++j) group.codes[j] = code_of(load_byte(block + 2 + j) ^ kSignedBytes);
  return group;
}

QuantBlock read_q4_0(const std::byte* block) {
  QuantBlock group = with_scale(load_fp16(block));
  read_split_nibbles(block + 2, group);
  return group;
}

QuantBlock read_q4_1(const std::byte* block) {
  QuantBlock group = with_scale(load_fp16(block), load_fp16(block + 2));
  read_split_nibbles(block + 4, group);
  return group;
}

QuantBlock read_q5_0(const std::byte* block) {
  QuantBlock group = with_scale(load_fp16(block));
  read_split_nibbles(block + 6, group);
  add_fifth_bits(block + 2, group);
  return group;
}

QuantBlock read_q5_1(const std::byte* block) {
  QuantBlock group = with_scale(load_fp16(block), load_fp16(block + 2));
  read_split_nibbles(block + 8, group);
  add_fifth_bits(block + 4, group);
  return group;
}

QuantBlock read_iq4_nl(const std::byte* block) {
  QuantBlock group = with_scale(load_fp16(block));
  read_split_nibbles(block + 2, group);
  look_up_iq4(group);
  return group;
}

// u = 12 + twice the value.
QuantBlock read_mxfp4(const std::byte* block) {
  QuantBlock group = with_scale(half_of_e8m0(load_byte(block)));
  read_split_nibbles(block + 1, group);
  for (std::uint8_t& code : group.codes) {
    code = code_of(static_cast<unsigned>(12 + static_cast<int>(kFp4Doubled[code])));
  }
  return group;
}

QuantBlock read_iq4_xs(const std::byte* block, int g) {
  const auto scales_high = load_unaligned<std::uint16_t>(block + 2);
  const unsigned low = load_byte(block + 4 + g / 2) >> (4 * (g % 2)) & 15;
  const unsigned high = scales_high >> (2 * g) & 3u;
  const int scale = static_cast<int>(low | high << 4) - 32;
  QuantBlock group = with_scale(load_fp16(block) * static_cast<float>(scale));
  read_split_nibbles(block + 8 + 16 * g, group);
  look_up_iq4(group);
  return group;
}

// Group g of 8 in Q4_K and Q5_K: scale and minimum of 6 bits each in 12 bytes.
QuantBlock with_packed_scale(const std::byte* block, int g) {
  const std::byte* const packed = block + 4;
  unsigned scale = load_byte(packed + g % 4) & 63;
  unsigned minimum = load_byte(packed + g % 4 + 4) & 63;
  if (g >= 4) {
    const unsigned low = load_byte(packed + g + 4);
    scale = (low & 15) | (load_byte(packed + g - 4) >> 6) << 4;
    minimum = low >> 4 | (load_byte(packed + g) >> 6) << 4;
  }
  return with_scale(load_fp16(block) * static_cast<float>(scale),
                    -(load_fp16(block + 2) * static_cast<float>(minimum)));
}

QuantBlock read_q4_k(const std::byte* block, int g) {
  QuantBlock group = with_packed_scale(block, g);
  for (int j = 0; j < 32; ++j) {
    group.codes[j] = code_of(load_byte(block + 16 + 32 * (g / 2) + j) >> (4 * (g % 2)) & 15);
  }
  return group;
}

QuantBlock read_q5_k(const std::byte* block, int g) {
  QuantBlock group = with_packed_scale(block, g);
  for (int j = 0; j < 32; ++j) {
    const unsigned low = load_byte(block + 48 + 32 * (g / 2) + j) >> (4 * (g % 2)) & 15;
    group.codes[j] = code_of(low | (load_byte(block + 16 + j) >> g & 1) << 4);
  }
  return group;
}

QuantBlock read_q6_k(const std::byte* block, int g) {
  const int half = g / 4;
  const int quarter = g % 4;
  QuantBlock group = {};
  for (int j = 0; j < 32; ++j) {
    const unsigned low =
        load_byte(block + 64 * half + 32 * (quarter % 2) + j) >> (4 * (quarter / 2)) & 15;
    const unsigned high = load_byte(block + 128 + 32 * half + j) >> (2 * quarter) & 3;
    group.codes[j] = code_of(low | high << 4);
  }
  for (int i = 0; i < 2; ++i) {
    const auto scale = static_cast<std::int8_t>(load_byte(block + 192 + 2 * g + i));
    group.scales[i] = load_fp16(block + 208) * static_cast<float>(scale);
  }
  return group;
}

struct QuantisedType {
  TensorType type;
  QuantTraits traits;
  std::size_t block_bytes;
  std::size_t groups;  // of 32 in a block
  QuantBlock (*read_one)(const std::byte* block) = nullptr;
  QuantBlock (*read)(const std::byte* block, int group) = nullptr;
};

constexpr QuantisedType kQuantisedTypes[] = {
    {TensorType::kQ4_0, {true, -8, true, false, false, 15, false}, 18, 1, read_q4_0},
    {TensorType::kQ4_1, {true, 0, true, true, false, 15, false}, 20, 1, read_q4_1},
    {TensorType::kQ5_0, {false, -16, true, false, false, 31, false}, 22, 1, read_q5_0},
    {TensorType::kQ5_1, {false, 0, true, true, false, 31, false}, 24, 1, read_q5_1},
    {TensorType::kQ8_0, {false, -128, true, false, false, 255, true}, 34, 1, read_q8_0},
    {TensorType::kIQ4_NL, {false, -128, true, false, false, 240, true}, 18, 1, read_iq4_nl},
    {TensorType::kMXFP4, {false, -12, false, false, false, 24, false, true}, 17, 1, read_mxfp4},
    {TensorType::kIQ4_XS,
     {false, -128, false, false, false, 240, true},
     136,
     8,
     nullptr,
     read_iq4_xs},
    {TensorType::kQ4_K, {true, 0, false, true, false, 15, false}, 144, 8, nullptr, read_q4_k},
    {TensorType::kQ5_K, {false, 0, false, true, false, 31, false}, 176, 8, nullptr, read_q5_k},
    {TensorType::kQ6_K, {false, -32, false, false, true, 63, false}, 210, 8, nullptr, read_q6_k},
};

const QuantisedType* find(TensorType type) {
  for (const QuantisedType& coded : kQuantisedTypes) {
    if (coded.type == type) return &coded;
  }
  return nullptr;
}

}  // namespace

const QuantTraits* quant_traits(TensorType type) {
  const QuantisedType* const coded = find(type);
  return coded == nullptr ? nullptr : &coded->traits;
}

QuantBlock read_quant_block(TensorType type, const std::byte* row, std::size_t column) {
  const QuantisedType* const coded = find(type);
  ASSERT(coded != nullptr, "asked only for types with quant_traits");
  const std::size_t index = column / 32;
  const std::byte* const block = row + index / coded->groups * coded->block_bytes;
  QuantBlock group = coded->read_one != nullptr
                         ? coded->read_one(block)
                         : coded->read(block, static_cast<int>(index % coded->groups));
  if (coded->traits.minima) return group;
  for (int i = 0; i < 2; ++i) {
    group.minima[i] = static_cast<float>(coded->traits.lowest) * group.scales[i];
  }
  return group;
}

}  // namespace pagoda::kernels::ref
