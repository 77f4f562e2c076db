#include "gguf/tensor_type.h"

#include <array>

#include "base/assert.h"

namespace pagoda::gguf {
namespace {

constexpr std::array<TensorTypeInfo, 33> kTypes = {{
    {TensorType::kF32, "F32", 1, 4, true},
    {TensorType::kF16, "F16", 1, 2, true},
    {TensorType::kQ4_0, "Q4_0", 32, 18, true},
    {TensorType::kQ4_1, "Q4_1", 32, 20, true},
    {TensorType::kQ5_0, "Q5_0", 32, 22, true},
    {TensorType::kQ5_1, "Q5_1", 32, 24, true},
    {TensorType::kQ8_0, "Q8_0", 32, 34, true},
    {TensorType::kQ2_K, "Q2_K", 256, 84, true},
    {TensorType::kQ3_K, "Q3_K", 256, 110, true},
    {TensorType::kQ4_K, "Q4_K", 256, 144, true},
    {TensorType::kQ5_K, "Q5_K", 256, 176, true},
    {TensorType::kQ6_K, "Q6_K", 256, 210, true},
    {TensorType::kIQ2_XXS, "IQ2_XXS", 256, 66, false},
    {TensorType::kIQ2_XS, "IQ2_XS", 256, 74, false},
    {TensorType::kIQ3_XXS, "IQ3_XXS", 256, 98, false},
    {TensorType::kIQ1_S, "IQ1_S", 256, 50, false},
    {TensorType::kIQ4_NL, "IQ4_NL", 32, 18, true},
    {TensorType::kIQ3_S, "IQ3_S", 256, 110, false},
    {TensorType::kIQ2_S, "IQ2_S", 256, 82, false},
    {TensorType::kIQ4_XS, "IQ4_XS", 256, 136, true},
    {TensorType::kI8, "I8", 1, 1, true},
    {TensorType::kI16, "I16", 1, 2, true},
    {TensorType::kI32, "I32", 1, 4, true},
    {TensorType::kI64, "I64", 1, 8, true},
    {TensorType::kF64, "F64", 1, 8, true},
    {TensorType::kIQ1_M, "IQ1_M", 256, 56, false},
    {TensorType::kBF16, "BF16", 1, 2, true},
    {TensorType::kTQ1_0, "TQ1_0", 256, 54, true},
    {TensorType::kTQ2_0, "TQ2_0", 256, 66, true},
    {TensorType::kMXFP4, "MXFP4", 32, 17, true},
    {TensorType::kNVFP4, "NVFP4", 64, 36, true},
    {TensorType::kQ1_0, "Q1_0", 128, 18, true},
    {TensorType::kQ2_0, "Q2_0", 64, 18, true},
}};

const TensorTypeInfo* find_row(std::uint32_t id) {
  for (const TensorTypeInfo& row : kTypes) {
    if (static_cast<std::uint32_t>(row.type) == id) return &row;
  }
  return nullptr;
}

}  // namespace

std::optional<TensorTypeInfo> find_tensor_type(std::uint32_t id) {
  const TensorTypeInfo* const row = find_row(id);
  if (row == nullptr) return std::nullopt;
  return *row;
}

const TensorTypeInfo& tensor_type_info(TensorType type) {
  const TensorTypeInfo* const row = find_row(static_cast<std::uint32_t>(type));
  ASSERT(row != nullptr, "a TensorType holds one of its enumerators");
  return *row;
}

}  // namespace pagoda::gguf
