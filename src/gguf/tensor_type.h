// The element types of GGUF tensors: ids, names and block sizes.
//
// A quantised row is a sequence of blocks of `block_elements` values in `block_bytes` bytes; how
// the bytes of a block are laid out is written where they are read, in kernels/ref/dequantise_*.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pagoda::gguf {

// The numbers are those in the file.
enum class TensorType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

struct TensorTypeInfo {
  TensorType type;
  std::string_view name;  // as llama.cpp prints it: "Q4_K"
  std::uint32_t block_elements;
  std::uint32_t block_bytes;
  bool readable;  // false: the codebook types IQ1, IQ2, IQ3, known by name and size only
};

// Returns nothing for ids that are unknown, retired or run-time only.
std::optional<TensorTypeInfo> find_tensor_type(std::uint32_t id);
const TensorTypeInfo& tensor_type_info(TensorType type);

}  // namespace pagoda::gguf
