#include "kernels/ref/dequantise.h"

#include <cstdint>

#include "base/assert.h"
#include "base/half.h"
#include "kernels/ref/dequantise_blocks.h"

namespace pagoda::kernels::ref {
namespace {

using gguf::TensorType;
using BlockFunction = void (*)(const std::byte* block, float* out);

template <class T>
void convert_one(const std::byte* element, float* out) {
  *out = static_cast<float>(load_unaligned<T>(element));
}

void convert_f16(const std::byte* element, float* out) { *out = load_fp16(element); }

void convert_bf16(const std::byte* element, float* out) {
  *out = float_from_bf16(load_unaligned<std::uint16_t>(element));
}

// Null for the codebook types.
BlockFunction block_function(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return convert_one<float>;
    case TensorType::kF16:
      return convert_f16;
    case TensorType::kBF16:
      return convert_bf16;
    case TensorType::kI8:
      return convert_one<std::int8_t>;
    case TensorType::kI16:
      return convert_one<std::int16_t>;
    case TensorType::kI32:
      return convert_one<std::int32_t>;
    case TensorType::kI64:
      return convert_one<std::int64_t>;
    case TensorType::kF64:
      return convert_one<double>;
    case TensorType::kQ4_0:
      return dequantise_q4_0;
    case TensorType::kQ4_1:
      return dequantise_q4_1;
    case TensorType::kQ5_0:
      return dequantise_q5_0;
    case TensorType::kQ5_1:
      return dequantise_q5_1;
    case TensorType::kQ8_0:
      return dequantise_q8_0;
    case TensorType::kQ2_K:
      return dequantise_q2_k;
    case TensorType::kQ3_K:
      return dequantise_q3_k;
    case TensorType::kQ4_K:
      return dequantise_q4_k;
    case TensorType::kQ5_K:
      return dequantise_q5_k;
    case TensorType::kQ6_K:
      return dequantise_q6_k;
    case TensorType::kIQ4_NL:
      return dequantise_iq4_nl;
    case TensorType::kIQ4_XS:
      return dequantise_iq4_xs;
    case TensorType::kMXFP4:
      return dequantise_mxfp4;
    case TensorType::kNVFP4:
      return dequantise_nvfp4;
    case TensorType::kQ1_0:
      return dequantise_q1_0;
    case TensorType::kQ2_0:
      return dequantise_q2_0;
    case TensorType::kTQ1_0:
      return dequantise_tq1_0;
    case TensorType::kTQ2_0:
      return dequantise_tq2_0;
    case TensorType::kIQ2_XXS:
    case TensorType::kIQ2_XS:
    case TensorType::kIQ3_XXS:
    case TensorType::kIQ1_S:
    case TensorType::kIQ3_S:
    case TensorType::kIQ2_S:
    case TensorType::kIQ1_M:
      break;
  }
  return nullptr;
}

}  // namespace

void dequantise_row(TensorType type, const std::byte* row, float* out, std::size_t elements) {
  const gguf::TensorTypeInfo& info = gguf::tensor_type_info(type);
  const BlockFunction dequantise_block = block_function(type);
  ASSERT(dequantise_block != nullptr, "the type is readable");
  ASSERT(elements % info.block_elements == 0, "a row is whole blocks");
  for (std::size_t done = 0; done < elements; done += info.block_elements) {
    dequantise_block(row, out + done);
    row += info.block_bytes;
  }
}

}  // namespace pagoda::kernels::ref
