// Seeded matrices of floats and of the types that GPUs multiply, as a file would hold them.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "base/random.h"
#include "kernels/ops.h"

namespace pagoda::model {

struct RandomMatrix {
  kernels::WeightMatrix view;
  std::vector<std::byte> bytes;
};

inline float uniform(std::uint64_t seed, std::uint64_t index, float bound) {
  return static_cast<float>((2 * random_unit(seed, 7, index) - 1) * bound);
}

// Fills a block with random codes and scales such that values stay within about `bound`.
inline void fill_block(gguf::TensorType type, std::byte* block, std::uint64_t seed, float bound) {
  using gguf::TensorType;
  const gguf::TensorTypeInfo& info = gguf::tensor_type_info(type);
  for (std::uint32_t i = 0; i < info.block_bytes; ++i) {
    block[i] = static_cast<std::byte>(random_bits(seed, 8, i));
  }
  const auto put = [&](std::size_t at, float value) {
    const std::uint16_t bits = fp16_from_float(value);
    std::memcpy(block + at, &bits, 2);
  };
  const float d = bound * (0.75f + 0.25f * uniform(seed, 0, 1.0f));
  switch (type) {
    case TensorType::kQ4_0:
      return put(0, d / 8);
    case TensorType::kQ4_1:
      put(0, d / 8);
      return put(2, -d);
    case TensorType::kQ8_0:
      return put(0, d / 128);
    case TensorType::kQ4_K:
      put(0, d / 8 / 32);
      return put(2, d / 32);
    case TensorType::kQ6_K:
      return put(208, d / 32 / 64);
    case TensorType::kMXFP4:  // an exponent; the largest code stands for 6
      block[0] = static_cast<std::byte>(127 + std::ilogb(d / 6) - static_cast<int>(seed % 3));
      return;
    default:
      return;
  }
}

inline RandomMatrix random_matrix(gguf::TensorType type, std::size_t rows, std::size_t columns,
                                  std::uint64_t seed) {
  using gguf::TensorType;
  const gguf::TensorTypeInfo& info = gguf::tensor_type_info(type);
  const std::size_t row_bytes = columns / info.block_elements * info.block_bytes;
  RandomMatrix made = {{}, std::vector<std::byte>(rows * row_bytes)};
  const float bound = std::sqrt(3.0f / static_cast<float>(columns));
  const std::size_t blocks = made.bytes.size() / info.block_bytes;
  for (std::size_t i = 0; i < blocks; ++i) {
    std::byte* const block = made.bytes.data() + i * info.block_bytes;
    const float value = uniform(seed, i, bound);
    const std::uint16_t half =
        type == TensorType::kF16 ? fp16_from_float(value) : bf16_from_float(value);
    if (type == TensorType::kF32) {
      std::memcpy(block, &value, 4);
    } else if (info.block_elements == 1) {
      std::memcpy(block, &half, 2);
    } else {
      fill_block(type, block, seed + i * 977, bound);
    }
  }
  made.view = {.type = type,
               .data = made.bytes.data(),
               .rows = rows,
               .columns = columns,
               .row_bytes = row_bytes};
  return made;
}

}  // namespace pagoda::model
